"""What a worker is to load, and what it offers then, as they are sent between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
    filesystem_ops_layout,
)
from modular_tf.codec import at_most, between, decode, shown
from modular_tf.filesystem.configuration import Option
from modular_tf.first_contact.finding import Finding  # noqa: TC001  (for the codec)
from modular_tf.isolation.rights import ALL
from modular_tf.loading.filesystem_tables import MAX_SCHEMES, Table
from modular_tf.loading.task import Task  # noqa: TC001  (likewise)

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem

READY, OFFER, ENDED = "ready", "offer", "ended"
"""What the application is sent: the watcher waits for the socket; the worker's offer; its end."""
ASK = b"?"
"""What the application sends for the worker to report where it is, and to be ended."""
_LAYOUTS = {
    layout.name: layout
    for layout in (RANDOM_ACCESS_FILE_OPS, WRITABLE_FILE_OPS, READ_ONLY_MEMORY_REGION_OPS)
}


def _option(value: Any) -> Option:
    """Make an option of what `encode` made of it, to which bytes are a list of numbers."""
    values = tuple(bytes(each) if isinstance(each, list) else each for each in value["values"])
    return Option(**{**value, "values": values})


class SetOptions(NamedTuple):
    """One call that set options."""

    filesystem: int  # the number of the worker's filesystem
    options: tuple[Annotated[Any, _option], ...]  # of `Option`
    is_single: bool  # it was set by `set_filesystem_configuration_option`

    def replaces(self, earlier: SetOptions) -> bool:
        """Return whether nothing is left of an earlier call when this one is made."""
        names = {option.name for option in self.options}
        return self.filesystem == earlier.filesystem and names.issuperset(
            option.name for option in earlier.options
        )

    def set_on(self, filesystem: Filesystem) -> None:
        """Make the call again."""
        if self.is_single:
            filesystem.set_filesystem_configuration_option(self.options[0])
        else:
            filesystem.set_filesystem_configuration(self.options)


class Job(NamedTuple):
    """What a worker is to do."""

    task: Task
    bundled: bool  # it comes with this package
    environment: dict[str, str]  # all variables of the worker; values may be secret
    instance: str = ""  # the instance that it serves; "" for the plugin itself
    schemes: tuple[str, ...] | None = None  # that the plugin is known to serve; None if not known
    directories: tuple[str, ...] = ()  # those that the configuration names for it
    # The schemes that processes before this one served, in that order; None for the first one.
    # Calls name them by their place here.
    offered: tuple[str, ...] | None = None
    options: tuple[SetOptions, ...] = ()  # what was set in processes before this one

    def __repr__(self) -> str:
        """Show no value of a variable."""
        return f"Job({self.task!r}, instance={self.instance!r})"


class SentTable(NamedTuple):
    """A table of a worker's plugin as it is sent: which slots it has, without their addresses."""

    kind: str
    size: Annotated[int, between(8, 1 << 16)]
    slots: Annotated[tuple[str, ...], at_most(64)]

    @classmethod
    def of(cls, table: Table) -> SentTable:
        """Return what is sent of a table."""
        return cls(table.kind, table.size, tuple(name for name, at in table.slots.items() if at))


_SentTables: Any = Annotated[tuple[SentTable, ...], at_most(len(_LAYOUTS) + 1)]


def _tables_of_scheme(value: Any) -> dict[str, Table]:
    """Read the tables of one scheme; a slot has no address, only 1 where the plugin has it."""
    found = {}
    for kind, size, slots in decode(_SentTables, value):
        layout = filesystem_ops_layout(size) if kind == FILESYSTEM_OPS.name else _LAYOUTS.get(kind)
        if layout is None:
            raise ValueError(f"expected the name of a table, found {shown(kind)}")
        known = {slot.name for slot in layout.slots if slot.end <= size}
        if unknown := sorted(set(slots) - known):
            raise ValueError(f"expected slots of {kind}, found {unknown!r:.200}")
        found[kind] = Table(kind, size, layout, {name: int(name in slots) for name in known})
    if FILESYSTEM_OPS.name not in found:
        raise ValueError("expected a table of the filesystem for each scheme")
    return found


class WorkerOffer(NamedTuple):
    """What a worker has loaded."""

    finding: Finding  # the schemes whose `init` succeeded, and what is wrong with the plugin
    # For each of these schemes, in that order, its tables by their kind. The worker itself has a
    # `SentTable` for each instead.
    tables: Annotated[tuple[Annotated[Any, _tables_of_scheme], ...], at_most(MAX_SCHEMES)]
    # For each scheme the number of the first one with the same files.
    stores: tuple[Annotated[int, between(0, MAX_SCHEMES)], ...]
    guarded: bool  # the plugin was bound to the guarded functions of its known defects
    # What it was restricted to, of `isolation.rights.ALL`.
    limits: Annotated[tuple[str, ...], at_most(len(ALL))] = ()

    @property
    def schemes(self) -> tuple[str, ...]:
        """What it serves, in the order of `tables`."""
        return () if self.finding.offer is None else self.finding.offer.schemes


def read_offer(value: Any) -> WorkerOffer:
    """Return the offer that a worker reported; `ValueError` if a plugin wrote something else."""
    offer = decode(WorkerOffer, value)
    if not len(offer.tables) == len(offer.stores) == len(offer.schemes):
        raise ValueError(f"expected tables and a store of {len(offer.schemes)} schemes")
    if any(store > number for number, store in enumerate(offer.stores)):
        raise ValueError("expected the number of an earlier scheme with the same files")
    if not set(offer.limits) <= set(ALL):
        raise ValueError(f"expected limits of a worker, found {shown(offer.limits)}")
    return offer
