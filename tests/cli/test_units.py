"""How sizes are told, and which time limits are taken."""

from __future__ import annotations

import threading
from argparse import ArgumentTypeError

import pytest

from modular_tf.cli import time_limit
from modular_tf.cli.text import size
from modular_tf.cli.time_limit import TimeLimit, seconds
from modular_tf.errors import DeadlineExceededError


@pytest.mark.parametrize(
    ("n_bytes", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1024, "1023.0 KiB"),
        (1024**2, "1.0 MiB"),
        (1000 * 1024**3, "1000.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_a_size_has_the_largest_unit_that_it_fills(n_bytes, told):
    assert size(n_bytes) == told


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "x", ""])
def test_a_time_limit_is_a_number_of_seconds_above_0(text):
    with pytest.raises(ArgumentTypeError, match="no number of seconds above 0"):
        seconds(text)


def test_any_wait_that_threads_can_do_is_a_time_limit():
    assert seconds("0.001") == 0.001
    assert seconds(str(threading.TIMEOUT_MAX)) == threading.TIMEOUT_MAX


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_person_is_told_that_a_call_takes_long(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(time_limit, "_SILENCE_S", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    may_end = threading.Event()
    limit = TimeLimit(0.05)
    with pytest.raises(DeadlineExceededError, match=r"counting did not return within 0\.05 s"):
        limit.call("counting", may_end.wait)
    may_end.set()

    said = "modular-tf: counting takes long; it is given up after 0.05 s\n"
    assert capsys.readouterr().err == (said if is_terminal else "")
    assert limit.stuck_calls == 1


def test_a_call_that_returns_leaves_nothing_stuck():
    limit = TimeLimit(60.0)

    assert limit.call("counting", lambda: 5) == 5
    with pytest.raises(KeyError):
        limit.call("failing", {}.popitem)
    assert limit.stuck_calls == 0
    limit.leave_if_stuck(3)
