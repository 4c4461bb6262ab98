"""Running many inputs through a target: each by a seed and an index, alone or in a row."""

from __future__ import annotations

import random
import signal
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.fuzz.target import load_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

LIMIT_S = 20
"""Seconds of processor time, not of the clock, after which one input counts as a hang."""


class FuzzError(AssertionError):
    """An input that our code did not answer as it should.

    Attributes:
        given: The input.
    """

    def __init__(self, target: str, seed: int, index: int, given: Any, cause: BaseException):
        self.given = given
        super().__init__(
            f"{type(cause).__name__}: {cause}\n"
            f"the input: {_shown(given)}\n"
            f"again: scripts/fuzz {target} --replay {seed}:{index}"
        )


class HangError(Exception):
    """One input took more processor time than any may."""


def make_input(target: str, seed: int, index: int) -> Any:
    """Return the input of that index in the campaign of that seed."""
    return load_target(target).make(random.Random(f"{target}:{seed}:{index}"))


def run(
    target: str,
    seed: int,
    indices: Iterable[int],
    progress: Callable[[Counter[str]], None] = lambda _: None,
) -> Counter[str]:
    """Check inputs one by one; in the main thread only, for the sake of the limit.

    Args:
        target: One of `TARGETS`.
        seed: Which campaign.
        indices: Which inputs of it.
        progress: Called after each input with the kinds of answers so far.

    Returns:
        How often each kind of answer came.

    Raises:
        FuzzError: At the first wrong answer.
    """
    check = load_target(target).check
    kinds: Counter[str] = Counter()
    for index in indices:
        given = make_input(target, seed, index)
        try:
            with _limited_time():
                kinds[check(given)] += 1
        except Exception as error:
            raise FuzzError(target, seed, index, given, error) from error
        progress(kinds)
    return kinds


@contextmanager
def _limited_time() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _hang)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"more than {LIMIT_S} s of processor time")


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 2000 else f"{text[:2000]}... ({len(text)} characters)"
