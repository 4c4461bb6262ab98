"""What checks make of plugins that translate no name, and of files and regions without an end."""

from __future__ import annotations

import random

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.filesystem.every_call import names_in_missing_containers_are_refused
from modular_tf.check.filesystem.operations import Region
from modular_tf.check.filesystem.workspace import FilesystemWorkspace, expect_content
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

_FAR = 1 << 28


class _Untranslated:
    def offers(self, slot):
        return True

    def call(self, slot, *arguments):
        raise Blocked(f"translate_name({arguments[0]!r}) returned NULL")


def test_names_that_are_not_translated_block_the_check():
    fs = FilesystemWorkspace(_Untranslated(), "s://host/run/check", None, random.Random(0))

    with pytest.raises(Blocked, match="returned NULL"):
        names_in_missing_containers_are_refused(fs)


class _Endless:
    """Has a file that gives as many bytes as it is asked for, wherever it is read."""

    def offers(self, slot):
        return True

    def call(self, slot, *arguments):
        return Answer(Code.OK, value=self, call=f"{slot}(F)")

    def read(self, offset, n):
        if offset > _FAR:
            raise AssertionError("it is read on and on")
        return Answer(Code.OK, value=bytes(n), call="read(F)")

    def close(self):
        pass


def test_a_file_that_never_ends_is_not_read_on_and_on():
    target = Target(path="/plugin.so", kind="filesystem", reached=Pass.RAW)
    fs = FilesystemWorkspace(_Endless(), "s://host/run/check", target, random.Random(0))

    with pytest.raises(Deviation, match="the content of F cannot be read") as deviation:
        expect_content(fs, "s://host/F", b"abcd", "the content of F")
    assert "read does not come to the end of the file" in deviation.value.found


@pytest.mark.parametrize("length", [4, 1 << 62, (1 << 64) - 1])
def test_a_region_of_memory_that_is_not_there_is_a_finding(length):
    answers = {"data": 0, "length": length}
    region = Region(lambda of, slot: Answer(Code.OK, value=answers[slot]), None, "region1")

    with pytest.raises(Deviation, match="the memory of a region cannot be read"):
        region.content()
