"""What an operation opened although it must not is given back, and nothing else is touched."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.expectation import Deviation


class _Writer:
    def __init__(self):
        self.calls = []

    def close(self):
        self.calls.append("close")

    def cleanup(self):
        self.calls.append("cleanup")


def test_what_must_not_be_opened_is_closed_and_cleaned_up():
    writer = _Writer()

    with pytest.raises(Deviation):
        Answer(Code.OK, value=writer).must_be(Code.FAILED_PRECONDITION)
    assert writer.calls == ["close", "cleanup"]


def test_what_a_failure_left_in_the_struct_is_not_called():
    """It may lead to memory that the plugin has freed: a failed opening is not cleaned up."""
    writer = _Writer()

    with pytest.raises(Deviation):
        Answer(Code.INTERNAL, value=writer).must_be(Code.NOT_FOUND)
    assert writer.calls == []
