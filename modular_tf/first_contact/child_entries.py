"""The entries of a child's report, parsed and checked by its watcher.

`journal.py` writes the entries. A plugin runs in the child and may write some itself, so an entry
that has not exactly the form of `journal.py` is rejected.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from modular_tf.codec import at_most, between, decode, row, shown
from modular_tf.first_contact.finding import Finding  # noqa: TC001  (for the codec)
from modular_tf.first_contact.process_state import RULES_OF_CHANGES
from modular_tf.processes.memory_use import MemoryUse
from modular_tf.processes.plain_text import MOST_OF_A_CALL, MOST_OF_A_MESSAGE, plain
from modular_tf.rules import Rule  # noqa: TC001  (for the codec)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_CHANGES = 64


def _complete(finding: Finding) -> Finding:
    if finding.incident is not None or finding.offer is None:
        raise ValueError("expected an offer, and no incident")
    return finding


def _of_changes(rule: Rule) -> Rule:
    if rule not in RULES_OF_CHANGES:
        raise ValueError(f"expected one of {sorted(RULES_OF_CHANGES)}, found {rule}")
    return rule


@row
class Change(NamedTuple):
    """A change of process-wide state: the rule that it breaks, and how."""

    rule: Annotated[Rule, _of_changes]
    message: Annotated[str, partial(plain, most=MOST_OF_A_MESSAGE)]


class Outcome(NamedTuple):
    """The result of a trial in which all calls returned: the finding, and changed process state."""

    finding: Annotated[Finding, _complete]
    changes: Annotated[tuple[Change, ...], at_most(_MOST_CHANGES)]


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


def _stops(stops: Any) -> Stops:
    decode(Annotated[int, between(1, 1)], stops)  # type: ignore[arg-type]
    return Stops()


_Flag: Any = Annotated[int, between(0, 1)]
_READERS: Mapping[frozenset[str], Callable[..., Entry]] = {
    frozenset(("enters", "memory")): lambda enters, memory: Entered(
        plain(decode(str, enters), MOST_OF_A_CALL), decode(MemoryUse, memory)
    ),
    frozenset(("finished", "memory")): lambda finished, memory: Finished(
        decode(Outcome, finished), decode(MemoryUse, memory)
    ),
    frozenset(("stops",)): _stops,
    frozenset(("lost",)): lambda lost: Lost(plain(decode(str, lost))),
    frozenset(("fault", "scarce")): lambda fault, scarce: Fault(
        plain(decode(str, fault)), decode(_Flag, scarce) == 1
    ),
}


def read_entry(entry: Any) -> Entry:
    """Return the entry that a line of the report holds; `ValueError` if it has not that form."""
    read = _READERS.get(frozenset(entry)) if type(entry) is dict else None
    if read is None:
        raise ValueError(f"expected an entry, found {shown(entry)}")
    return read(**entry)
