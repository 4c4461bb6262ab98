"""The conformance kit's checks through the host, on plugins that run in a worker."""

from __future__ import annotations

from itertools import product

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job, Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.contrib.built_plugin import installed_plugin
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

_IN_WORKER = {"MODULAR_TF_ISOLATION": "process"}
_FINE = {Verdict.PASSED, Verdict.SKIPPED, Verdict.NOTED}
# A forked child has a worker of its own, without what the plugin had in memory.
_OF_MEMORY = {("ram_filesystem", "FS-330")}
_CHECKS = [
    check
    for check in all_checks().values()
    if check.kind == "filesystem" and Pass.HOST in check.ways and check.level <= Level.ROBUST
]
_SCHEMES = {"ram_filesystem": "ram", "posix_filesystem": "file"}
_GROUPS = sorted({check.group for check in _CHECKS})


@BEYOND_THE_SAMPLE  # each run compares the operations (test_operations.py)
@pytest.mark.parametrize("case", list(product(_SCHEMES, _GROUPS)))
def test_a_plugin_conforms_in_a_worker_too(case):
    plugin, group = case
    scheme = _SCHEMES[plugin]
    ids = tuple(c.id for c in _CHECKS if c.group == group and (plugin, c.id) not in _OF_MEMORY)
    target = Target(str(installed_plugin(plugin)), "filesystem", Pass.HOST, scheme=scheme)
    with CheckProcesses(Limits()) as processes:
        (result,) = processes.run([Job(target, scheme, ids, _IN_WORKER)])
    assert result.fault is None
    assert len(result.outcomes) == len(ids)
    assert [outcome for outcome in result.outcomes if outcome.verdict not in _FINE] == []


def test_the_kit_reads_where_plugins_run(run_forked, tmp_path):
    child = run_forked(
        """
        import sys
        from modular_tf.check.filesystem.session import FilesystemSession
        from modular_tf.check.outcome import Pass
        from modular_tf.check.target import Target
        target = Target(sys.argv[1], "filesystem", Pass.HOST, scheme="ram", scratch=sys.argv[2])
        session = FilesystemSession(target)
        session.access.filesystem.path_exists("ram://x")
        print("ram_filesystem" in open("/proc/self/maps").read())
        session.close()
        """,
        installed_plugin("ram_filesystem"),
        tmp_path,
        env=_IN_WORKER,
    )
    assert child.stdout.split() == ["False"]
