"""The status codes that plugins and the host exchange (`TF_Code` of tf_status.h)."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """One outcome of a C call; the numbers are part of the ABI."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def from_int(cls, value: int) -> Code:
        """Return the code for `value`; a number outside 0..16 is UNKNOWN, as in TensorFlow."""
        try:
            return cls(value)
        except ValueError:
            return cls.UNKNOWN
