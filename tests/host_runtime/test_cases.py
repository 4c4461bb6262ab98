"""Every case of the C and C++ subjects passes in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.host_runtime.conftest import CaseRunner

SUBJECTS = Path(__file__).parent / "subjects"
JUDGED_ELSEWHERE = {
    ("status", "print_codes_of_errors"),
    ("temporary_files", "no_place_for_a_temporary_file"),
    ("threads", "a_thread_that_cannot_start"),
    ("tsl", "log_messages_of_each_severity"),
    ("tsl", "log_messages_in_their_parts"),
    ("tsl", "a_fatal_message_in_its_parts"),
    ("tsl", "an_older_fatal_message_in_its_parts"),
    ("tsl", "print_vmodule"),
    ("tsl", "a_fatal_message"),
    ("tsl", "a_fatal_message_of_older_plugins"),
}


def all_cases() -> list[tuple[str, str]]:
    """Return (subject, case) of each case that judges itself."""
    found = [
        (source.stem, case)
        for source in sorted(SUBJECTS.glob("*.c*"))
        if source.stem != "logging"
        for case in re.findall(r"^CASE\((\w+)\)", source.read_text(), re.MULTILINE)
    ]
    assert set(found) > JUDGED_ELSEWHERE
    return [case for case in found if case not in JUDGED_ELSEWHERE]


@pytest.mark.parametrize(("subject", "case"), all_cases())
def test_case(run_case: CaseRunner, subject: str, case: str) -> None:
    child = run_case(subject, case)

    assert child.stdout == "passed\n"
    assert child.stderr == ""
