"""The entries of a child's report, parsed and checked by its watcher.

`journal.py` writes the entries. A plugin runs in the child and may write some itself, so an entry
that has not exactly the form of `journal.py` is rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.first_contact.finding import Finding
from modular_tf.first_contact.process_state import RULES_OF_CHANGES
from modular_tf.processes.checked_values import (
    fields_of,
    known_rule,
    list_of,
    listed,
    number_in,
    shown,
    typed,
)
from modular_tf.processes.memory_use import MemoryUse
from modular_tf.processes.plain_text import MOST_OF_A_CALL, MOST_OF_A_MESSAGE, plain
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_CHANGES = 64
_MOST_BYTES = 1 << 62
_OUTCOME = frozenset(("finding", "changes"))


class Outcome(NamedTuple):
    """The result of a trial in which all calls returned.

    Attributes:
        finding: What the plugin would register, which rules it broke, what it opened.
        changes: The process-wide state that it changed.
    """

    finding: Finding
    changes: tuple[Violation, ...]


class Entered(NamedTuple):
    """A call is about to be made."""

    call: str
    memory: MemoryUse


class Finished(NamedTuple):
    """All calls returned."""

    outcome: Outcome
    memory: MemoryUse


class Stops(NamedTuple):
    """The plugin stopped the processes that watch over it."""


class Lost(NamedTuple):
    """Standard streams were closed or replaced."""

    streams: str


class Fault(NamedTuple):
    """The host's own code failed; `is_scarce` where a resource of the machine was used up."""

    text: str
    is_scarce: bool


Entry = Entered | Finished | Stops | Lost | Fault


def read_entry(entry: Any) -> Entry:
    """Return the entry that one line of the report holds.

    Raises:
        ValueError: It has not the form of an entry.
    """
    read = _READERS.get(frozenset(typed(entry, dict)))
    if read is None:
        raise ValueError(f"expected an entry, found {shown(entry)}")
    return read(**entry)


def _entered(enters: Any, memory: Any) -> Entered:
    return Entered(plain(typed(enters, str), MOST_OF_A_CALL), _memory(memory))


def _finished(finished: Any, memory: Any) -> Finished:
    return Finished(_outcome(finished), _memory(memory))


def _stops(stops: Any) -> Stops:
    number_in(stops, 1, 1)
    return Stops()


_READERS: Mapping[frozenset[str], Callable[..., Entry]] = {
    frozenset(("enters", "memory")): _entered,
    frozenset(("finished", "memory")): _finished,
    frozenset(("stops",)): _stops,
    frozenset(("lost",)): lambda lost: Lost(plain(typed(lost, str))),
    frozenset(("fault", "scarce")): lambda fault, scarce: Fault(
        plain(typed(fault, str)), number_in(scarce, 0, 1) == 1
    ),
}


def _memory(value: Any) -> MemoryUse:
    touched, allocated, files = (
        number_in(size, -_MOST_BYTES, _MOST_BYTES) for size in list_of(value, int, 3)
    )
    return MemoryUse(touched, allocated, files)


def _outcome(value: Any) -> Outcome:
    given = fields_of(value, _OUTCOME)
    finding = Finding.from_dict(given["finding"])
    if finding.incident is not None or finding.offer is None:
        raise ValueError("expected an offer, and no incident")
    changes = tuple(_change(change) for change in listed(given["changes"], _MOST_CHANGES))
    return Outcome(finding, changes)


def _change(value: Any) -> Violation:
    named, what = list_of(value, str, 2)
    broken = known_rule(named)
    if broken not in RULES_OF_CHANGES:
        raise ValueError(f"expected one of {sorted(RULES_OF_CHANGES)}, found {named}")
    return Violation(broken, plain(what, MOST_OF_A_MESSAGE))
