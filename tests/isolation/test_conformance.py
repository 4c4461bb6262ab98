"""The conformance kit's checks through the host, on plugins that run in a worker."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job, Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.fixtures.matrices import sampled

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_PLUGINS = Path(str(files("modular_tf").joinpath("plugins")))
_IN_WORKER = {"MODULAR_TF_ISOLATION": "process"}
_FINE = {Verdict.PASSED, Verdict.SKIPPED, Verdict.NOTED}
# A forked child has a worker of its own, without what the plugin had in memory.
_OF_MEMORY = {("ram", "FS-330")}
_CHECKS = [
    check
    for check in all_checks().values()
    if check.kind == "filesystem" and Pass.HOST in check.ways and check.level <= Level.ROBUST
]
_GROUPS = sorted({check.group for check in _CHECKS})


@pytest.mark.parametrize("group", sampled(_GROUPS, ["reading", "writing"]))
@pytest.mark.parametrize(("plugin", "scheme"), [("ram", "ram"), ("posix", "file")])
def test_a_plugin_conforms_in_a_worker_too(plugin: str, scheme: str, group: str) -> None:
    path = str(_PLUGINS / f"lib{plugin}_filesystem.so")
    ids = tuple(
        check.id
        for check in _CHECKS
        if check.group == group and (plugin, check.id) not in _OF_MEMORY
    )
    target = Target(path, "filesystem", Pass.HOST, scheme=scheme)
    with CheckProcesses(Limits()) as processes:
        (result,) = processes.run([Job(target, scheme, ids, _IN_WORKER)])
    assert result.fault is None
    assert len(result.outcomes) == len(ids)
    assert [outcome for outcome in result.outcomes if outcome.verdict not in _FINE] == []


def test_the_kit_reads_where_plugins_run(run_python: PythonRunner, tmp_path: Path) -> None:
    library = _PLUGINS / "libram_filesystem.so"
    child = run_python(
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
        library,
        tmp_path,
        env=_IN_WORKER,
    )
    assert child.stdout.split() == ["False"]
