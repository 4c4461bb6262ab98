"""Who makes and performs the programs of a check."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import SearchStrategy

    from modular_tf.check.sequences.program import Program, Step

_MODULES: Mapping[str, str] = {
    "filesystem": "modular_tf.check.filesystem.sequence_steps",
    "device": "modular_tf.check.device.sequence_steps",
}


class Performer(Protocol):
    """A module that knows the programs of one kind of plugin."""

    def steps(self) -> SearchStrategy[Step]:
        """Return where steps come from."""

    def script(self, program: Program) -> list[str]:
        """Return a program as C-like statements, one a step."""

    def perform(self, ground: Any, program: Program) -> None:
        """Do a program to the subject and its model.

        Args:
            ground: Of the kind of plugin, empty.
            program: The program; operations that the plugin does not offer are left out.

        Raises:
            Deviation: The two differ.
        """


def performer_of(kind: str) -> Performer:
    """Return the module for a kind of plugin."""
    return cast("Performer", import_module(_MODULES[kind]))
