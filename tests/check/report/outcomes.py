"""Outcomes, plugins and reports as tests need them."""

from __future__ import annotations

from modular_tf.check.level import Level
from modular_tf.check.outcome import Incident, Outcome, Pass, Verdict
from modular_tf.check.report.report import PluginReport, Report

CRASH = Incident(
    signal=11,
    last_call="read(file1, offset=0, n=10)",
    backtrace=("libmine.so mine_read+0x1a", "libmine.so mine_open+0x2"),
    last_output="about to fall\n",
)


def outcome(check_id, verdict, **values):
    """An outcome of a check of `mine://`, by its slots."""
    usual = {"subject": "mine://", "reached": Pass.RAW, "seconds": 0.25}
    return Outcome(check_id=check_id, verdict=verdict, **{**usual, **values})


def plugin(*outcomes, **values):
    """A report of `libmine.so`."""
    usual = {
        "path": "/plugins/libmine.so",
        "name": "mine",
        "kinds": ("filesystem",),
        "profile": "hierarchical",
        "level": Level.ROBUST,
        "seed": 7,
        "repeated_by": ("--seed", "7"),
    }
    return PluginReport(outcomes=outcomes, **{**usual, **values})


def report(*outcomes, **values):
    return Report((plugin(*outcomes, **values),), 1.5)


FAILED = outcome(
    "FS-156",
    Verdict.FAILED,
    message="the bytes are not those of the file",
    expected="b'abcd'",
    found="b'abc\\x00'",
    calls=("new_random_access_file('mine://F') -> OK", "read(file1, offset=0, n=4) -> 4, OK"),
)
CRASHED = outcome("FS-158", Verdict.CRASHED, incident=CRASH)
HUNG = outcome("FS-159", Verdict.HUNG, incident=Incident(last_call="read(file1)"), seconds=30.0)
EXITED = outcome("FS-161", Verdict.EXITED, incident=Incident(exit_status=3, last_call="read()"))
ALL_KINDS = (
    outcome("FS-150", Verdict.PASSED),
    FAILED,
    outcome("FS-169", Verdict.WARNED, message="the message does not name the path"),
    outcome("FS-167", Verdict.NOTED, message="the old bytes are still there"),
    CRASHED,
    HUNG,
    EXITED,
    outcome("FS-193", Verdict.SKIPPED, message="new_appendable_file is NULL"),
    outcome("FS-152", Verdict.BLOCKED, message="create_dir failed with INTERNAL: no"),
    outcome("FS-160", Verdict.KNOWN, message="it gives 11", reason="the store says so"),
)
