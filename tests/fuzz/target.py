"""What a target of fuzzing is, and which there are."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    import random

TARGETS = (
    "elf", "probe", "uri", "config", "scan_cache", "quarantine_file", "record", "finding",
    "op_definition",
)  # fmt: skip
"""The modules of this package that are targets."""


class Target(Protocol):
    """A module that makes inputs and checks what our code does with them."""

    def make(self, dice: random.Random) -> Any:
        """Return an input that depends on nothing but the dice and the target's own bases."""

    def check(self, given: Any) -> str:
        """Let our code have an input, and hold the answer against the oracle.

        Returns:
            What kind of answer it was, as "accepted" or "LD-005"; such kinds are counted.

        Raises:
            AssertionError: The answer is wrong.
            Exception: Our code let out something that it does not announce.
        """


def load_target(name: str) -> Target:
    """Return the target of that name."""
    return cast("Target", importlib.import_module(f"tests.fuzz.{name}"))
