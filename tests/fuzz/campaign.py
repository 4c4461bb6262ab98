"""Running many inputs through a target: each by a seed and an index, alone or in a row.

A target is a module of this package with two functions. `make(dice)` returns an input that depends
on nothing but the dice and the target's own bases. `check(given)` has our code answer it, holds the
answer against the oracle and returns its kind, as "loadable" or "LD-005", which is counted. It
raises `AssertionError` where the answer is wrong; what else comes out of it is something that our
code does not announce.
"""

from __future__ import annotations

import importlib
import random
import signal
from collections import Counter
from contextlib import contextmanager

TARGETS = ("probe", "record")
"""The modules of this package that are targets."""
LIMIT_S = 20
"""Seconds of processor time, not of the clock, after which one input counts as a hang."""


class FuzzError(AssertionError):
    """An input (`given`) that our code did not answer as it should."""

    def __init__(self, target, seed, index, given, cause):
        self.given = given
        text = repr(given)
        if len(text) > 2000:
            text = f"{text[:2000]}... ({len(text)} characters)"
        super().__init__(
            f"{type(cause).__name__}: {cause}\n"
            f"the input: {text}\n"
            f"again: scripts/fuzz {target} --replay {seed}:{index}"
        )


class HangError(Exception):
    """One input took more processor time than any may."""


def load_target(name):
    return importlib.import_module(f"tests.fuzz.{name}")


def make_input(target, seed, index):
    return load_target(target).make(random.Random(f"{target}:{seed}:{index}"))


def run(target, seed, indices, progress=lambda _: None):
    """Check inputs one by one, and count the kinds of answers; in the main thread only.

    Args:
        target: One of `TARGETS`.
        seed: Which campaign.
        indices: Which inputs of it.
        progress: Called after each input with the kinds of answers so far.

    Raises:
        FuzzError: At the first wrong answer.
    """
    check = load_target(target).check
    kinds = Counter()
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
def _limited_time():
    before = signal.signal(signal.SIGPROF, _hang)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _hang(*_):
    raise HangError(f"more than {LIMIT_S} s of processor time")
