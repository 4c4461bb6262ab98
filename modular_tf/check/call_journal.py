"""The calls to a plugin as a report shows them: C-like and shortened."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.announcement import announce

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.answers import Answer

_MOST_CALLS = 1000
_MOST_OF_A_VALUE = 120
_MOST_OF_A_MESSAGE = 80


class CallJournal:
    """Reports each call before it is made, and stores what came of it. [any thread]

    Attributes:
        calls: What was called since somebody cleared it, the last at the end; `...` stands for
            the oldest where there are too many.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []

    def enter(self, call: str) -> None:
        """Announce the next call."""
        announce(call)

    def leave(self, call: str, came: str = "") -> None:
        """Keep a call that came back."""
        if len(self.calls) >= _MOST_CALLS:
            self.calls[: _MOST_CALLS // 2] = ["..."]
        self.calls.append(f"{call} -> {came}" if came else call)


def once_each(calls: Iterable[str]) -> list[str]:
    """Return calls with each that follows its equal counted: `stat('F') -> OK (16 times)`."""
    counted = ((call, len([*equal])) for call, equal in groupby(calls))
    return [f"{call} ({times} times)" if times > 1 else call for call, times in counted]


def outcome_of(answer: Answer) -> str:
    """Show what a call with a status returned: `4, OUT_OF_RANGE "behind the end"`."""
    name = Code(answer.code).name if answer.code in tuple(Code) else str(answer.code)
    status = f'{name} "{_cut(answer.message, _MOST_OF_A_MESSAGE)}"' if answer.message else name
    if answer.touched is False:
        status = f"{status} (not set)"
    return status if answer.returned is None else f"{answer.returned}, {status}"


def shown(value: object) -> str:
    """Show an argument, shortened."""
    if isinstance(value, bytes):
        return f"{_cut(repr(value), 40)}, n={len(value)}"
    return _cut(repr(value), _MOST_OF_A_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-most // 2 :]}"
