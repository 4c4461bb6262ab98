"""Replays every call recorded from TensorFlow; what differs must be declared, and the other way."""

from fnmatch import fnmatchcase

import pytest

from tests.gfile import call_runner, recording

CASES = recording.cases()
RECORDED = recording.recording()
DIFFERENCES = recording.differences()


def _calls(steps):
    return [step["call"] if isinstance(step, dict) else step for step in steps]


def test_the_recording_is_of_this_table_and_large_enough_to_mean_something():
    table = {key: case["steps"] for key, (case, _) in CASES.items()}
    recorded = {key: _calls(case["steps"]) for key, case in RECORDED["cases"].items()}

    assert RECORDED["tensorflow"] == "2.21.0"
    assert recorded == table
    assert sum(map(len, table.values())) > 1500


@pytest.mark.parametrize("key", CASES)
def test_answers_are_tensorflows_or_declared(key, functions, tmp_path):
    case, store = CASES[key]
    directory = tmp_path.resolve() / case["id"] / store
    ours = call_runner.run_in_fresh_directory(functions, case, store, directory)
    found = recording.compare(key, RECORDED["cases"][key], ours)
    declared = [difference for difference in DIFFERENCES if fnmatchcase(key, difference.case)]
    undeclared = [str(one) for one in found if not any(known.covers(one) for known in declared)]
    agreeing = [difference for difference in declared if not any(map(difference.covers, found))]

    assert not undeclared, "\n".join(undeclared)
    assert not agreeing, f"no such difference any more: {agreeing}"


def test_every_difference_is_of_a_case_and_has_a_reason():
    cases = {difference.case for difference in DIFFERENCES}

    assert [case for case in cases if not any(fnmatchcase(key, case) for key in CASES)] == []
    assert all(len(difference.reason.split()) > 4 for difference in DIFFERENCES)
