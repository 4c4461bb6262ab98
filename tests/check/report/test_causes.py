"""What counts as one cause, and what to do about each kind of end."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Incident, Pass, Verdict
from modular_tf.check.report.json_report import as_json
from modular_tf.check.report.text import plugin_lines
from modular_tf.check.report.wording import causes, facts, headline, remedy
from tests.check.report.outcomes import (
    CRASH,
    CRASHED,
    EXITED,
    FAILED,
    HUNG,
    outcome,
    plugin,
    report,
)


def _crash(check_id, **values):
    return outcome(check_id, Verdict.CRASHED, incident=replace(CRASH, **values))


def _hang(check_id, call, frame):
    incident = Incident(last_call=call, backtrace=(frame,))
    return outcome(check_id, Verdict.HUNG, incident=incident)


_IN_C = ("/lib/libc.so.6 memcpy+0x10", "libmine.so mine_read+0x1a")
_ELSEWHERE_IN_C = ("/lib/libc.so.6 memcpy+0x80", "libmine.so mine_read+0x1a")
_BY_HOST = {"reached": Pass.HOST}
_APART = [["FS-158"], ["FS-160"]]
_AS_ONE = [["FS-158", "FS-160"]]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        # Crashes are by frame and function; which instruction of the C library faults depends on
        # sizes and processors.
        ([CRASHED, _crash("FS-160", last_call="read(file7, offset=9, n=1)")], _AS_ONE),
        ([CRASHED, _crash("FS-160", last_call="stat('mine://F')")], _APART),
        ([_crash("FS-158", backtrace=_IN_C), _crash("FS-160", backtrace=_ELSEWHERE_IN_C)], _AS_ONE),
        # Hangs in one function are one, wherever they were.
        ([_hang("FS-158", "read(file1)", "f+1"), _hang("FS-160", "read(file2)", "f+9")], _AS_ONE),
        # What is known of no function stays with its check.
        (
            [replace(_crash(i), incident=Incident(signal=9)) for i in ("FS-158", "FS-160")],
            _APART,
        ),
        # Wrong answers are reported check by check, whatever number a handle has.
        (
            [FAILED, replace(FAILED, check_id="FS-157"), replace(FAILED, **_BY_HOST)],
            [["FS-156"], ["FS-157"]],
        ),
        (
            [
                replace(FAILED, message="read(file1, n=4) gave 3"),
                replace(FAILED, message="read(file2, n=4) gave 3", **_BY_HOST),
                replace(FAILED, message="read(file2, n=5) gave 3", subject="other://"),
            ],
            [["FS-156"], ["FS-156"]],
        ),
    ],
)
def test_what_is_one_cause(outcomes, expected):
    assert [cause.check_ids for cause in causes(outcomes, BAD)] == expected


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
        (_crash("FS-158", last_output=_SANITIZED), "what the sanitizer reported"),
        (replace(CRASHED, incident=Incident(signal=9)), "return a status instead"),
        (HUNG, "Find out what read waits for"),
        (EXITED, "Let read return a status"),
    ],
)
def test_the_remedy_fits_how_the_process_ended(ended, words):
    assert words in remedy(ended)


def test_a_misuse_of_memory_is_reported_by_its_own_rule():
    harm = outcome(
        "FS-202", Verdict.FAILED, message="misuse (rule FS-329)", found="freed twice",
        broken_rule="FS-329",
    )  # fmt: skip
    shown = dict(facts(harm))
    (tried_on,), (required,) = shown["tried"], shown["required"]

    assert tried_on.startswith(all_checks()["FS-202"].rule.requirement)
    assert required.startswith(all_checks()["FS-329"].rule.requirement)
    assert shown["remedy"] == [all_checks()["FS-329"].rule.remedy] == [remedy(harm)]
    (check,) = as_json(report(harm))["plugins"][0]["checks"]
    assert check["requirement"] == all_checks()["FS-329"].rule.requirement
    assert check["remedy"] == remedy(harm)


_IN_OWN_FOLDERS = (
    "rename_file('s3://b/18ea7561a4eabf2f-19/FS-128-2/18ea7561a9d9d299-19/FS-128-1/x', 'y')"
)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (_crash("FS-158", last_call=_IN_OWN_FOLDERS), "rename_file('s3://b/…/x', 'y')"),
        (
            replace(EXITED, message="the watcher ended", incident=Incident()),
            "the watcher ended",
        ),
        (
            replace(CRASHED, verdict=Verdict.KNOWN, reason="the next release mends it"),
            "known deviation: the next release mends it; crashed with ",
        ),
    ],
)
def test_a_headline_says_what_is_known(ended, words):
    assert words in headline(ended)


def test_a_message_of_the_host_is_no_output_of_the_plugin():
    output = "about to fall\nmodular_tf: SIGSEGV in plugin mine, read: the process ends [LD-130]\n"
    lines = plugin_lines(plugin(_crash("FS-158", last_output=output)), verbose=False)
    text = "\n".join(map(str, lines))

    assert "about to fall" in text
    assert "LD-130" not in text
