"""What a call into a plugin came to, as it travels from the child process to the test."""

from __future__ import annotations

from typing import Any, NamedTuple

OK = 0
INVALID_ARGUMENT = 3
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12

UNTOUCHED = 2
"""What a status says before the call: a plugin that leaves it so never set it."""


class Outcome(NamedTuple):
    """Status and result of one call."""

    code: int
    message: str
    value: Any = None
