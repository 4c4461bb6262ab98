"""The targets of fuzzing: each a module with two functions, `make` and `check`.

`make(dice)` returns an input that depends on nothing but the dice and the target's own bases.
`check(given)` has our code answer it, holds the answer against the oracle and returns its kind, as
"accepted" or "LD-005", which is counted. It raises `AssertionError` where the answer is wrong;
what else comes out of it is something that our code does not announce.
"""

from __future__ import annotations

import importlib

TARGETS = ("elf", "probe", "uri", "config", "record", "finding")
"""The modules of this package that are targets."""


def load_target(name):
    return importlib.import_module(f"tests.fuzz.{name}")
