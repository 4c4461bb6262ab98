"""Checks of kernels on a sound library, and on one whose kernels end the process."""

from __future__ import annotations

import pytest

from modular_tf.check.job import Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import candidates_of
from modular_tf.check.run import check_plugins
from modular_tf.check.settings import CheckSettings
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.contrib.built_plugin import built_plugin
from tests.fixtures.matrices import sampled


def _checked(path, only=("KN-*",), **options):
    settings = CheckSettings(level=Level.HARD, only=only, options=options)
    candidates, problems = candidates_of([str(path)])
    assert problems == []
    (plugin,) = check_plugins(candidates, settings, seed=1, limits=Limits()).plugins
    assert plugin.faults == ()
    return {outcome.check_id: outcome for outcome in plugin.outcomes}


@pytest.fixture
def crashing(monkeypatch):
    """The fixture whose kernels of DefectScale end the process when they compute."""
    monkeypatch.setenv(DEFECT_VARIABLE, "crash")
    return defective_plugin("kernel")


_ALL, _SOME = ("*",), ("MatMul", "Relu*")


@pytest.mark.parametrize("operations", sampled([_SOME, _ALL], [_SOME]), ids=", ".join)
def test_the_reference_kernels_keep_every_rule(operations):
    outcomes = _checked(built_plugin("host_kernels"), ops=list(operations))

    assert {each.verdict for each in outcomes.values()} == {Verdict.PASSED}
    assert {each.reached for each in outcomes.values()} == {Pass.LIBRARY, Pass.HOST}
    assert {each.subject for each in outcomes.values()} == {"", "kernels"}


def test_a_crash_names_operation_inputs_attributes_and_kernel(crashing):
    outcomes = _checked(crashing, only=("kernel computation",))
    crashed = [each for each in outcomes.values() if each.verdict is Verdict.CRASHED]
    others = [each for each in outcomes.values() if each.verdict is not Verdict.CRASHED]

    (one,) = crashed
    assert one.incident.last_call == (
        "DefectScale.compute(float[4, 4], T=float, factor=2.0) of kernel 'DefectScale' on CPU"
    )
    assert others
    assert {each.verdict for each in others} == {Verdict.PASSED}


def test_only_kernels_of_named_operations_are_called(crashing):
    outcomes = _checked(crashing, only=("kernel computation",), ops=["Rel*"])

    assert {each.verdict for each in outcomes.values()} == {Verdict.PASSED}
