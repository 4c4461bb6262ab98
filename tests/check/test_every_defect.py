"""For every check a defect, which that check finds and no other; so no check can be empty."""

from __future__ import annotations

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Limits
from modular_tf.check.outcome import Verdict
from modular_tf.check.run import CheckProcesses
from tests.check.building import FIXTURES, listed_defects
from tests.check.defect_runs import (
    ALL_PASS,
    SAMPLE,
    WHOLE,
    DefectRuns,
    Subjects,
    checks_with_defects,
    expected_finders,
    findings,
    read_table,
)
from tests.check.trying import FINE, defect_job
from tests.check.unfit_libraries import UNFIT
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

_IDS = checks_with_defects()


def _sampled(check_id):
    """A group is tried as a whole: by one worker of pytest-xdist, not by each."""
    check = all_checks()[check_id]
    marks = [pytest.mark.xdist_group(f"defects of {check.kind} {check.group}")]
    if WHOLE or check_id not in SAMPLE:
        marks.append(BEYOND_THE_SAMPLE)
    return pytest.param(check_id, marks=marks)


def _wanted(request):
    """Return the checks that the tests of this module that were asked for are about."""
    items = [item for item in request.session.items if item.parent is request.node]
    wanted = {item.callspec.params.get("check_id") for item in items if hasattr(item, "callspec")}
    return [check_id for check_id in _IDS if check_id in wanted]


@pytest.fixture(scope="module")
def with_defects(request, tmp_path_factory, processes_with):
    """What becomes of all that are asked for."""
    subjects = Subjects(tmp_path_factory.mktemp("damaged"))
    return DefectRuns(processes_with, subjects, _wanted(request))


@pytest.fixture(scope="module")
def always_passing():
    """Processes whose checks all pass, whatever the plugin does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("modular_tf.processes.interpreter._LIKE_HERE", ALL_PASS)
        processes = CheckProcesses(Limits(jobs=4))
    with processes:
        yield processes


def _finders(outcomes):
    return sorted({outcome.check_id for outcome in outcomes})


def _shown(outcomes):
    return "\n".join(
        f"{o.check_id} ({o.reached.value}) {o.verdict.value}: {o.message} {o.expected} {o.found}"
        for o in outcomes
    )


@pytest.mark.parametrize("check_id", [_sampled(check_id) for check_id in _IDS])
def test_the_defect_is_found_by_its_check_alone(check_id, with_defects):
    """And nothing is found without the defect."""
    tried = with_defects.tried(check_id)
    of_check = [outcome for outcome in tried.sound if outcome.check_id == check_id]
    amiss = [outcome for outcome in of_check if outcome.verdict not in FINE]

    assert tried.faults == []
    assert _finders(tried.found) == sorted(expected_finders(check_id)), _shown(tried.found)
    assert of_check
    assert amiss == [], _shown(amiss)


@pytest.mark.parametrize(
    "ids", [SAMPLE[::7], pytest.param(_IDS, marks=BEYOND_THE_SAMPLE)], ids=["sample", "all"]
)
def test_a_check_that_always_passes_does_not_find_its_defect(ids, always_passing, tmp_path):
    """So each check that no longer looks is noticed by the test above."""
    subjects = Subjects(tmp_path)
    results = always_passing.run([subjects.job_of_defect(check_id) for check_id in ids])
    outcomes = [outcome for result in results for outcome in result.outcomes]

    assert [result.fault for result in results if result.fault is not None] == []
    assert [outcome.check_id for outcome in outcomes] == ids
    assert _finders(findings(outcomes, [])) == [], _shown(findings(outcomes, []))


@pytest.mark.parametrize(
    ("defect", "finder", "message"),
    [
        ("large-pieces-come-first", "FS-178", "the content of the closed file"),
        ("case-is-ignored", "FS-290", "names are changed"),
        ("long-paths-are-cut", "FS-357", ""),
    ],
)
def test_a_check_finds_more_than_the_defect_of_the_table(defect, finder, message, outcomes_of):
    sound, found = (
        outcomes_of(defect_job("filesystem", name, [finder]))[finder] for name in ("", defect)
    )

    assert (sound.verdict, found.verdict) == (Verdict.PASSED, Verdict.FAILED), (sound, found)
    assert message in found.message


def test_every_check_has_a_defect_in_one_place():
    table, coupled = read_table("defects.toml"), read_table("coupled_checks.toml")
    listed = [check_id for fixture in FIXTURES for check_id in listed_defects(fixture)]
    listed += [*table["variants"], *table["dialects"], *UNFIT]
    named = {
        *coupled,
        *table["options"],
        *(check_id for ids in coupled.values() for check_id in ids),
    }

    assert sorted(all_checks().keys() - set(_IDS)) == []
    assert sorted({*listed, *named} - all_checks().keys()) == []
    assert len(listed) == len(set(listed))
    assert all(map(listed_defects, FIXTURES))
