"""The limits of one trial."""

from __future__ import annotations

from typing import NamedTuple

from modular_tf.rules import first_contact as rules

ACCEPTABLE = frozenset(
    {
        rules.MEMORY_BOUNDED,
        rules.OUTPUT_UNUSED,  # a warning by itself; configurations name it
        rules.SIGNAL_HANDLERS_KEPT,
        rules.LOCALE_KEPT,
        rules.NO_PROCESSES_LEFT,
        rules.RIGHTS_KEPT,
        rules.NO_FATAL_TIMER,
        rules.ENDS_IN_ORDER,
    }
)
"""The rules of first contact that a user may take as warnings: those that let the process live."""


class Limits(NamedTuple):
    """The limits of one trial."""

    seconds: float = 30.0  # how long it may take
    # How much memory, beyond the host's own, a process of it may have allocated or touched
    # (`memory_use`). Address space that is merely reserved, files and the stacks of threads do not
    # count.
    memory_mib: int = 1024
    processes: int = 16  # how many it may have started and left at any moment
    accept: frozenset[str] = frozenset()  # ids of rules, of `ACCEPTABLE`, that only warn (LD-069)
