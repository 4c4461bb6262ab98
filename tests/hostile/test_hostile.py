"""A sample of the hostile libraries; `scripts/try_hostile_libraries` tries them all."""

from __future__ import annotations

import pytest

from tests.hostile.libraries import hostile_libraries
from tests.hostile.run import outcome_of

LIBRARIES = {library.name: library for library in hostile_libraries()}
SAMPLE = [
    "device-hang-init",
    "device-change-environment-init",
    "unfit-LD-003",
    "device-exit-later-init",
    "device-overwrite-tables-later-init",
    "filesystem-hang-at-exit-init",
]


def test_there_are_more_than_a_hundred():
    assert len(LIBRARIES) > 100


@pytest.mark.parametrize("name", SAMPLE)
def test_an_application_serves_all_else_and_says_why(name, tmp_path):
    outcome = outcome_of(LIBRARIES[name], tmp_path / "run")

    assert outcome.problem is None
