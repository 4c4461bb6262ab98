"""What a check expected and found, and the calls before, as a report shows them."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.calls import CallJournal, once_each
from modular_tf.check.device.workspace import expect_bytes
from modular_tf.check.expectation import Deviation, expect_equal
from modular_tf.check.filesystem.operations import Region
from modular_tf.check.filesystem.workspace import FilesystemWorkspace, expect_content
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

_LONG = bytes(range(256)) * 40


@pytest.mark.parametrize(
    ("found", "expected", "shown", "wanted"),
    [
        (b"abd", b"abc", ["b'abd'"], "b'abc'"),
        (
            _LONG[:5000] + b"!" + _LONG[5001:],
            _LONG,
            ["b'!", "from byte 5000", "of 10240"],
            "b'\\x88",
        ),
        (_LONG[:5000], _LONG, ["b''"], "b'\\x88"),
        ("x" * 999 + "b", "x" * 999 + "a", ["'b'"], "'a'"),
        ([*range(500), 7], [*range(500), 8], ["[7]"], "[8]"),
    ],
    ids=["short", "a byte", "the end", "text", "entries"],
)
def test_what_differs_is_shown(found, expected, shown, wanted):
    with pytest.raises(Deviation) as deviation:
        expect_equal(found, expected, "the content of F")

    assert all(part in deviation.value.found for part in shown)
    assert wanted in deviation.value.expected
    assert len(deviation.value.found) < 400


def test_the_first_wrong_byte_of_a_device_and_their_number_are_named():
    expected = bytes(200_000)
    found = bytearray(expected)
    for at in (70_001, 70_002, 199_999):
        found[at] = 7

    with pytest.raises(Deviation) as deviation:
        expect_bytes(bytes(found), expected, "memory")

    assert deviation.value.message == "memory differs in 3 of 200000 bytes, from byte 70001 on"
    assert deviation.value.found.startswith("07 07 00")


def test_repeated_calls_are_shown_once_and_those_that_are_left_out_by_dots():
    calls = ["open(F) -> OK", *["stat(F) -> OK"] * 16, "close(F)", "stat(F) -> OK"]
    shown = ["open(F) -> OK", "stat(F) -> OK (16 times)", "close(F)", "stat(F) -> OK"]
    assert once_each(calls) == shown

    journal = CallJournal()
    for _ in range(5000):
        journal.leave("stat(F)", "OK")
    first, again = once_each(journal.calls)
    assert first == "..."
    assert again.startswith("stat(F) -> OK (")


@pytest.mark.parametrize(
    ("code", "allowed", "ends"),
    [
        (Code.OK, Code.FAILED_PRECONDITION, ["close", "cleanup"]),
        # It may lead to memory that the plugin has freed: a failed opening is not cleaned up.
        (Code.INTERNAL, Code.NOT_FOUND, []),
    ],
)
def test_what_was_opened_although_it_must_not_is_given_back(code, allowed, ends):
    calls = []
    writer = SimpleNamespace(
        close=lambda: calls.append("close"), cleanup=lambda: calls.append("cleanup")
    )

    with pytest.raises(Deviation):
        Answer(code, value=writer).must_be(allowed)
    assert calls == ends


# ---- Files and regions without an end ----


class _Endless:
    """Has a file that gives as many bytes as it is asked for, wherever it is read."""

    def offers(self, slot):
        return True

    def call(self, slot, *arguments):
        return Answer(Code.OK, value=self, call=f"{slot}(F)")

    def read(self, offset, n):
        assert offset <= 1 << 28, "it is read on and on"
        return Answer(Code.OK, value=bytes(n), call="read(F)")

    def close(self):
        pass


def test_a_file_that_never_ends_is_not_read_on_and_on():
    target = Target(path="/plugin.so", kind="filesystem", reached=Pass.RAW)
    ground = FilesystemWorkspace(_Endless(), "s://host/run/check", target, random.Random(0))

    with pytest.raises(Deviation, match="the content of F cannot be read") as deviation:
        expect_content(ground, "s://host/F", b"abcd", "the content of F")
    assert "read does not come to the end of the file" in deviation.value.found


@pytest.mark.parametrize("length", [4, 1 << 62, (1 << 64) - 1])
def test_a_region_of_memory_that_is_not_there_is_a_finding(length):
    answers = {"data": 0, "length": length}
    region = Region(lambda of, slot: Answer(Code.OK, value=answers[slot]), None, "region1")

    with pytest.raises(Deviation, match="the memory of a region cannot be read"):
        region.content()
