"""What a check expected and found, and the calls before, as a report shows them."""

from __future__ import annotations

import pytest

from modular_tf.check.calls import CallJournal, once_each
from modular_tf.check.expectation import Deviation, expect_equal

_LONG = bytes(range(256)) * 40


@pytest.mark.parametrize(
    ("found", "expected", "shown", "wanted"),
    [
        (b"abd", b"abc", "b'abd'", "b'abc'"),
        (_LONG[:5000] + b"!" + _LONG[5001:], _LONG, "b'!", "b'\\x88"),
        (_LONG[:5000], _LONG, "b''", "b'\\x88"),
        ("x" * 999 + "b", "x" * 999 + "a", "'b'", "'a'"),
        ([*range(500), 7], [*range(500), 8], "[7]", "[8]"),
    ],
    ids=["short", "a byte", "the end", "text", "entries"],
)
def test_what_differs_is_shown(found, expected, shown, wanted):
    with pytest.raises(Deviation) as deviation:
        expect_equal(found, expected, "the content of F")

    assert shown in deviation.value.found
    assert wanted in deviation.value.expected
    assert len(deviation.value.found) < 400


def test_the_place_and_the_length_are_shown():
    with pytest.raises(Deviation) as deviation:
        expect_equal(_LONG[:5000] + b"!" + _LONG[5001:], _LONG, "the content of F")

    assert "from byte 5000" in deviation.value.found
    assert "of 10240" in deviation.value.found


def test_repeated_calls_are_shown_once():
    calls = ["open(F) -> OK", *["stat(F) -> OK"] * 16, "close(F)", "stat(F) -> OK"]

    assert once_each(calls) == [
        "open(F) -> OK", "stat(F) -> OK (16 times)", "close(F)", "stat(F) -> OK",
    ]  # fmt: skip


def test_a_journal_shows_that_it_left_calls_out():
    journal = CallJournal()
    for _ in range(5000):
        journal.leave("stat(F)", "OK")

    first, again = once_each(journal.calls)
    assert first == "..."
    assert again.startswith("stat(F) -> OK (")
