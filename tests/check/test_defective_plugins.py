"""The switchable plugins themselves: they load, and have the defect that they are asked for."""

from __future__ import annotations

import signal

import pytest

from tests.check.building import DEFECT_VARIABLE, FIXTURES, defective_plugin

_LOAD = """
    import sys
    from modular_tf import Config, PluginService
    config = Config(first_contact="never", load="eager")
    with PluginService(config=config, bundled=False) as service:
        record = service.load(sys.argv[1]).plugins[0]
        print(record.state.value, *(reason.rule for reason in record.reasons))
"""


@pytest.mark.parametrize("fixture", FIXTURES)
def test_without_a_defect_it_is_the_reference_plugin(fixture, run_python):
    assert run_python(_LOAD, defective_plugin(fixture)).stdout == "loaded\n"


def test_the_defect_is_the_one_that_is_asked_for(run_python):
    child = run_python(_LOAD, defective_plugin("device"), env={DEFECT_VARIABLE: "SE-009"})

    assert child.stdout == "failed SE-009\n"


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_defect_that_nobody_knows_ends_the_process(fixture, run_python):
    plugin, environment = defective_plugin(fixture), {DEFECT_VARIABLE: "FS-999"}
    child = run_python(_LOAD, plugin, env=environment, status=-signal.SIGABRT)

    assert "there is no defect FS-999" in child.stderr
