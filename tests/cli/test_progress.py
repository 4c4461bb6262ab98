"""Progress of long copies and runs of checks: for a person, silent while short, gone afterwards."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from modular_tf.check.outcome import Verdict
from modular_tf.cli import check_progress, progress_line
from modular_tf.cli.fs import copying

PASSED, FAILED = (Verdict.PASSED, "FS-001"), (Verdict.FAILED, "FS-002")


class Terminal(io.StringIO):
    """Standard error that says that a person is watching."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(progress_line, "time", clock)
    return clock


def shown(clock, stream, monkeypatch, steps):
    """Advance by a megabyte at each of these times, of four in all; return what appears."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        sign = copying.Progress("s3://b/x\x1b[2J", 4 * 2**20)
        for step in steps:
            clock.now = 1000.0 + step
            sign.advance(2**20)
        sign.close()
    return stream.getvalue()


def test_a_short_copy_shows_nothing(clock, monkeypatch):
    assert shown(clock, Terminal(), monkeypatch, [0.1, 0.2, 0.3, 0.4]) == ""


def test_a_long_copy_tells_how_far_it_is_and_cleans_up(clock, monkeypatch):
    seen = shown(clock, Terminal(), monkeypatch, [0.2, 1.0, 1.01, 2.0])

    assert seen.split("\r\x1b[K") == [
        "",
        "s3://b/x\\x1b[2J  50% of 4.0 MiB, 2.0 MiB/s",
        "s3://b/x\\x1b[2J  100% of 4.0 MiB, 2.0 MiB/s",
        "",
    ]


def test_nobody_watching_nothing_shown(clock, monkeypatch):
    assert shown(clock, io.StringIO(), monkeypatch, [1.0, 2.0, 3.0, 4.0]) == ""


def test_an_empty_file_is_whole_at_once(clock, monkeypatch):
    stream = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        sign = copying.Progress("x", 0)
        clock.now += 1
        sign.advance(0)
        sign.close()

    assert "100% of 0 B" in stream.getvalue()


def test_checks_are_counted_per_plugin(clock, monkeypatch):
    stream = Terminal()
    plan = SimpleNamespace(path="/a.so", name="a\x1b[2J", steps=[(None, ["FS-001", "FS-002"])])
    outcomes = [SimpleNamespace(verdict=v, check_id=i) for v, i in (PASSED, FAILED)]
    monkeypatch.setattr(sys, "stderr", stream)

    with check_progress.CheckProgress() as sign:
        for outcome in outcomes:
            clock.now += 1
            sign.tell(plan, outcome)

    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "a\\x1b[2J: 1 of 2, 0 bad, last FS-001",
        "a\\x1b[2J: 2 of 2, 1 bad, last FS-002",
        "",
    ]
