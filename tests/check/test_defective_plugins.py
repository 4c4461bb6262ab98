"""The switchable plugins themselves: a defect that is not theirs is no plugin without a defect."""

from __future__ import annotations

import signal

import pytest

from tests.check.building import DEFECT_VARIABLE, FIXTURES, defective_plugin

_LOAD = """
    import sys
    from modular_tf import Config, PluginService
    config = Config(first_contact="never", load="eager")
    with PluginService(config=config, bundled=False) as service:
        service.load(sys.argv[1])
"""


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_defect_that_nobody_knows_ends_the_process(fixture, run_forked):
    plugin, environment = defective_plugin(fixture), {DEFECT_VARIABLE: "FS-999"}
    child = run_forked(_LOAD, plugin, env=environment, status=-signal.SIGABRT)

    assert "there is no defect FS-999" in child.stderr
