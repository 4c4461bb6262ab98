"""What counts as one cause, and what to do about each kind of end."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from modular_tf.check.outcome import BAD, Incident, Pass, Verdict
from modular_tf.check.report.text import plugin_lines
from modular_tf.check.report.wording import causes, headline, remedy
from tests.check.report.outcomes import CRASH, CRASHED, EXITED, FAILED, HUNG, outcome, plugin


def _causes(*outcomes):
    return [cause.check_ids for cause in causes(outcomes, BAD)]


def _crash(check_id, **values):
    return outcome(check_id, Verdict.CRASHED, incident=replace(CRASH, **values))


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        ({"last_call": "read(file7, offset=9, n=1)"}, True),
        ({"last_call": "stat('mine://F')"}, False),
        ({"backtrace": ("libmine.so mine_read+0x1b",)}, False),
        ({"signal": 7}, False),
    ],
    ids=["handle", "function", "frame", "signal"],
)
def test_crashes_in_one_frame_of_one_function_are_one_cause(values, is_one):
    expected = [["FS-158", "FS-160"]] if is_one else [["FS-158"], ["FS-160"]]

    assert _causes(CRASHED, _crash("FS-160", **values)) == expected


def test_the_frame_that_counts_is_the_plugin_s():
    """Which instruction of the C library faults depends on sizes and processors."""
    first = _crash("FS-158", backtrace=("/lib/libc.so.6 memcpy+0x10", "libmine.so mine_read+0x1a"))
    other = _crash("FS-160", backtrace=("/lib/libc.so.6 memcpy+0x80", "libmine.so mine_read+0x1a"))

    assert _causes(first, other) == [["FS-158", "FS-160"]]


def test_hangs_in_one_function_are_one_cause_wherever_they_were():
    there = Incident(last_call="read(file1)", backtrace=("libmine.so mine_read+0x1",))
    elsewhere = Incident(last_call="read(file2)", backtrace=("libmine.so mine_read+0x9",))
    other = replace(HUNG, check_id="FS-160", incident=elsewhere)

    assert _causes(replace(HUNG, incident=there), other) == [["FS-159", "FS-160"]]


def test_what_is_known_of_no_function_stays_with_its_check():
    nowhere = [
        outcome(i, Verdict.CRASHED, incident=Incident(signal=9)) for i in ("FS-158", "FS-160")
    ]

    assert _causes(*nowhere) == [["FS-158"], ["FS-160"]]


def test_wrong_answers_are_reported_check_by_check_whatever_number_a_handle_has():
    other = replace(FAILED, check_id="FS-157")
    assert _causes(FAILED, other, replace(FAILED, reached=Pass.HOST)) == [["FS-156"], ["FS-157"]]

    by_slots = replace(FAILED, message="read(file1, n=4) gave 3")
    by_host = replace(FAILED, message="read(file2, n=4) gave 3", reached=Pass.HOST)
    other = replace(FAILED, message="read(file2, n=5) gave 3", subject="other://")
    assert _causes(by_slots, by_host, other) == [["FS-156"], ["FS-156"]]


def test_the_crash_with_the_fewest_calls_is_reported():
    longer = replace(CRASHED, calls=("a()", "b()", "read(file1, offset=0, n=10)"))
    shorter = replace(_crash("FS-160"), calls=("read(file1, offset=0, n=10)",))

    (cause,) = causes([longer, shorter], [Verdict.CRASHED])

    assert cause.first is shorter
    assert cause.check_ids == ["FS-160", "FS-158"]


_SANITIZED = (
    "==1==ERROR: AddressSanitizer: boom\nSUMMARY: AddressSanitizer: double-free a.cc:1 in f\n"
)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (CRASHED, "Mend read, in the first frame"),
        (_crash("FS-158", signal=signal.SIGABRT), "exception that nobody"),
        (_crash("FS-158", signal=signal.SIGFPE), "divides by zero"),
        (_crash("FS-158", last_output=_SANITIZED), "what the sanitizer reported"),
        (replace(CRASHED, incident=Incident(signal=9)), "return a status instead"),
        (HUNG, "Find out what read waits for"),
        (EXITED, "Let read return a status"),
    ],
)
def test_the_remedy_fits_how_the_process_ended(ended, words):
    assert words in remedy(ended)


def test_the_folders_of_the_kit_are_left_out():
    call = "rename_file('s3://b/18ea7561a4eabf2f-19/FS-128-2/18ea7561a9d9d299-19/FS-128-1/x', 'y')"

    assert "rename_file('s3://b/…/x', 'y')" in headline(_crash("FS-158", last_call=call))


def test_the_message_of_the_host_itself_is_not_what_the_plugin_said():
    said = "about to fall\nmodular_tf: SIGSEGV in plugin mine, read: the process ends [LD-130]\n"

    text = "\n".join(
        map(str, plugin_lines(plugin(_crash("FS-158", last_output=said)), verbose=False))
    )

    assert "about to fall" in text
    assert "LD-130" not in text


def test_headlines_of_a_watcher_that_is_gone_and_of_a_known_crash():
    gone = outcome("FS-161", Verdict.EXITED, message="the watcher ended", incident=Incident())
    known = replace(CRASHED, verdict=Verdict.KNOWN, reason="the next release mends it")

    assert headline(gone) == "the watcher ended"
    assert headline(known).startswith("known deviation: the next release mends it; crashed with ")
