"""Replays every call recorded from TensorFlow; what differs must be declared, and the other way."""

from fnmatch import fnmatchcase

import pytest

from tests.gfile import call_runner, recording

CASES = recording.cases()
RECORDED = recording.recording()
DIFFERENCES = recording.differences()


@pytest.fixture(scope="module")
def differs(functions, tmp_path_factory):
    """Run a case, once in this module, and list the answers that are not TensorFlow's."""
    scratch = tmp_path_factory.mktemp("replay").resolve()
    known = {}

    def replay(key):
        if key not in known:
            case, store = CASES[key]
            directory = scratch / case["id"] / store
            ours = call_runner.run_in_fresh_directory(functions, case, store, directory)
            known[key] = recording.compare(key, RECORDED["cases"][key], ours)
        return known[key]

    return replay


def _calls(steps):
    return [step["call"] if isinstance(step, dict) else step for step in steps]


def test_the_recording_is_of_this_table():
    table = {key: case["steps"] for key, (case, _) in CASES.items()}
    recorded = {key: _calls(case["steps"]) for key, case in RECORDED["cases"].items()}

    assert RECORDED["tensorflow"] == "2.21.0"
    assert recorded == table


def test_the_recording_is_large_enough_to_mean_something():
    assert sum(len(case["steps"]) for case in RECORDED["cases"].values()) > 1500


@pytest.mark.parametrize("key", CASES)
def test_answers_are_tensorflows_or_declared(key, differs):
    undeclared = [
        str(found)
        for found in differs(key)
        if not any(difference.covers(found) for difference in DIFFERENCES)
    ]

    assert not undeclared, "\n".join(undeclared)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: f"{d.case}-{d.step}")
def test_a_declared_difference_is_one(difference, differs):
    keys = [key for key in CASES if fnmatchcase(key, difference.case)]
    agreeing = [key for key in keys if not any(map(difference.covers, differs(key)))]

    assert keys, f"no recorded case is called {difference.case}"
    assert not agreeing, f"no such difference any more: {agreeing}"


def test_every_difference_has_a_reason():
    assert all(len(difference.reason.split()) > 4 for difference in DIFFERENCES)
