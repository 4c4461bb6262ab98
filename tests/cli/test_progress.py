"""Progress of long copies and runs of checks: for a person, silent while short, gone afterwards."""

import io
import sys
from types import SimpleNamespace

import pytest

from modular_tf.check.outcome import Verdict
from modular_tf.cli import check
from modular_tf.cli import progress as progress_module
from modular_tf.cli.progress import TransferProgress, phase
from modular_tf.filesystem import jobs
from modular_tf.filesystem.jobs import Totals

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
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


@pytest.fixture
def totals(clock, monkeypatch):
    monkeypatch.setattr(jobs, "time", clock)
    return Totals()


def shown(clock, totals, stream, monkeypatch, steps):
    """Advance by a megabyte at each of these times, of four in all; return what appears."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setitem(sys.modules, "rich.progress", None)
        progress = TransferProgress(totals, is_wanted=True)
        totals.find(1)
        totals.begin(4 * 2**20)
        for step in steps:
            clock.now = 1000.0 + step
            totals.add_bytes(2**20)
            progress.show()
        progress.clear()
    return stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "steps"),
    [(Terminal, [0.1, 0.2, 0.3, 0.4]), (io.StringIO, [1.0, 2.0, 3.0, 4.0])],
    ids=["a short copy", "nobody watching"],
)
def test_nothing_is_shown(clock, totals, monkeypatch, stream, steps):
    assert shown(clock, totals, stream(), monkeypatch, steps) == ""


def test_a_long_copy_tells_how_far_it_is_and_cleans_up(clock, totals, monkeypatch):
    seen = shown(clock, totals, Terminal(), monkeypatch, [0.2, 1.0, 1.01, 2.0])

    assert seen.split("\r\x1b[K") == [
        "",
        "0 of 1 file, 2.0 MiB of 4.0 MiB, 2.0 MiB/s, 0:01 left",
        "0 of 1 file, 4.0 MiB of 4.0 MiB, 2.0 MiB/s",
        "",
    ]


def test_what_is_being_stored_is_told_with_its_time(clock, totals, monkeypatch):
    totals.store("s3://b/k")
    seen = shown(clock, totals, Terminal(), monkeypatch, [1.0, 2.0, 3.0, 17.0])

    assert seen.split("\r\x1b[K")[-2].endswith(", storing 1 file for 17 s")
    totals.leave("s3://b/k")
    assert phase(totals) == ""


def test_the_bytes_of_files_that_are_not_begun_are_estimated(totals):
    totals.find(10)
    assert totals.expected_bytes() is None
    totals.begin(100)
    totals.begin(300)

    assert totals.expected_bytes() == 2000


def test_rich_shows_the_same_totals(clock, totals, monkeypatch):
    pytest.importorskip("rich")
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        progress = TransferProgress(totals, is_wanted=True)
        totals.find(3)
        totals.store("s3://b/\x1b[2J")
        clock.now += 5
        progress.show()
        progress.clear()

    assert "0 of 3 files" in stream.getvalue()
    assert "storing 1 file for 5 s" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()


def test_checks_are_counted_per_plugin(clock, monkeypatch):
    stream = Terminal()
    plan = SimpleNamespace(path="/a.so", name="a\x1b[2J", number_of_checks=2)
    outcomes = [SimpleNamespace(verdict=v, check_id=i) for v, i in (PASSED, FAILED)]
    monkeypatch.setattr(sys, "stderr", stream)

    with check.CheckProgress() as sign:
        for outcome in outcomes:
            clock.now += 1
            sign.count(plan, outcome)

    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "a\\x1b[2J: 1 of 2, 0 bad, last FS-001",
        "a\\x1b[2J: 2 of 2, 1 bad, last FS-002",
        "",
    ]
