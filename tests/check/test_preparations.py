"""A check that cannot be prepared is blocked, and names the check of the step that failed."""

from __future__ import annotations

import pytest

from modular_tf.check.outcome import Verdict
from tests.check.trying import defect_job


@pytest.mark.parametrize(
    ("kind", "defect", "fails", "others"),
    [
        ("device", "copies-are-refused", "SE-200", ["SE-202", "SE-207"]),
        ("filesystem", "files-are-refused", "FS-170", ["FS-156", "FS-235"]),
    ],
)
def test_what_cannot_copy_or_write_fails_there_and_blocks_the_rest(
    kind, defect, fails, others, outcomes_of
):
    outcomes = outcomes_of(defect_job(kind, defect, [*others, fails], kind=kind))

    assert outcomes.pop(fails).verdict is Verdict.FAILED
    assert [one.verdict for one in outcomes.values()] == [Verdict.BLOCKED] * 2
    assert {one.message.rpartition(": ")[2] for one in outcomes.values()} == {f"see {fails}"}


def test_files_of_long_paths_that_are_cut_are_found(outcomes_of):
    job = defect_job("filesystem", "long-paths-are-cut", ["FS-357"])
    cut = outcomes_of(job)["FS-357"]

    assert (cut.verdict, cut.expected, cut.found) == (Verdict.FAILED, "b'one'", "b'two'")
