"""How far a library comes when it is loaded, and what that makes of the checks of it."""

from __future__ import annotations

import json

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job, Limits
from modular_tf.check.level import Level
from modular_tf.check.options import Options
from modular_tf.check.outcome import BAD, Pass, Verdict
from modular_tf.check.plan import selected
from modular_tf.check.run import CheckProcesses
from modular_tf.check.settings import CheckSettings
from modular_tf.check.target import Target

_TRY = """
    import json, sys
    from modular_tf.check.load_trial import try_loading
    from modular_tf.check.outcome import Pass
    from modular_tf.check.target import Target
    target = Target(sys.argv[1], "filesystem", Pass.LIBRARY)
    print(json.dumps(try_loading(target, float(sys.argv[2]))._asdict()))
"""
_LONG_S, _SHORT_S = 60, 1


def _steps(run_python, library, limit_s=_LONG_S):
    trial = json.loads(run_python(_TRY, library, str(limit_s)).stdout)
    steps = ("mapped", "returned", "taken", "repeated", "refused")
    return {step for step in steps if trial[step]}, trial


@pytest.mark.parametrize(
    ("variant", "steps"),
    [
        ("good", {"mapped", "returned", "taken", "repeated"}),
        ("free-null", {"mapped", "returned", "taken", "repeated"}),
        ("constructor-crashes", set()),
        ("versioned-short-name", {"mapped", "returned", "taken", "repeated"}),
        ("init-plugin-crashes", {"mapped"}),
        ("init-plugin-aborts", {"mapped"}),
        ("init-plugin-exits", {"mapped"}),
        ("init-plugin-throws", {"mapped", "refused"}),
    ],
)
def test_each_step_that_was_done_is_told(run_python, fixture_plugin, variant, steps):
    assert _steps(run_python, fixture_plugin(variant))[0] == steps


def test_a_library_that_hangs_is_not_waited_for(run_python, fixture_plugin):
    steps, _ = _steps(run_python, fixture_plugin("init-plugin-hangs"), _SHORT_S)

    assert steps <= {"mapped"}


def test_what_it_prints_while_it_is_mapped_is_told_and_shown_nowhere(run_python, fixture_plugin):
    library = fixture_plugin("constructor-prints")
    child = run_python(_TRY, library, str(_LONG_S))

    assert json.loads(child.stdout)["words"] == "fixture: here I am\n"
    assert child.stderr == ""


_IDS = tuple(c.id for c in all_checks().values() if c.group == "library")


def _outcomes(library, load_seconds, ids=_IDS):
    target = Target(
        str(library), "filesystem", Pass.LIBRARY, options=Options(load_seconds=load_seconds)
    )
    with CheckProcesses(Limits()) as processes:
        (result,) = processes.run([Job(target, "", ids, {})])
    assert result.fault is None
    return {outcome.check_id: outcome for outcome in result.outcomes}


@pytest.mark.parametrize(
    ("variant", "check_id", "verdict"),
    [
        ("constructor-crashes", "LD-050", Verdict.CRASHED),
        ("init-plugin-crashes", "FS-130", Verdict.CRASHED),
        ("init-plugin-aborts", "FS-130", Verdict.CRASHED),
        ("init-plugin-exits", "FS-130", Verdict.EXITED),
        ("init-plugin-hangs", "FS-130", Verdict.HUNG),
        ("init-plugin-throws", "LD-052", Verdict.FAILED),
    ],
)
def test_one_fault_is_one_bad_verdict(fixture_plugin, variant, check_id, verdict):
    hangs = verdict is Verdict.HUNG
    outcomes = _outcomes(fixture_plugin(variant), _SHORT_S if hangs else _LONG_S)
    bad = {name: found.verdict for name, found in outcomes.items() if found.verdict in BAD}

    assert bad == {check_id: verdict}
    assert outcomes["FS-105"].verdict is Verdict.BLOCKED


def test_checks_of_loading_concern_plugins_of_each_kind(fixture_device_plugin):
    chosen = selected(CheckSettings(level=Level.REGISTERS), ("device",))
    ids = tuple(check.id for check in chosen if check.kind == "library")
    outcomes = _outcomes(fixture_device_plugin(), _LONG_S, ids)

    assert {"LD-001", "LD-050", "LD-060"} <= set(ids)
    assert {check.kind for check in chosen} == {"library", "device"}
    assert not {"LD-051", "LD-052"} & {check.id for check in chosen}  # on TF_InitPlugin
    assert {o.verdict for o in outcomes.values()} == {Verdict.PASSED}
