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
from modular_tf.codec import at_most, between, decode, encode, shown
from modular_tf.filesystem.configuration import Option
from modular_tf.first_contact.finding import Finding  # noqa: TC001  (for the codec)
from modular_tf.isolation.rights import ALL
from modular_tf.loading.filesystem_tables import MAX_SCHEMES, Table
from modular_tf.loading.task import Task

if TYPE_CHECKING:
    from modular_tf.filesystem.configuration import OptionValue
    from modular_tf.filesystem.filesystem import Filesystem

_LAYOUTS = {
    layout.name: layout
    for layout in (RANDOM_ACCESS_FILE_OPS, WRITABLE_FILE_OPS, READ_ONLY_MEMORY_REGION_OPS)
}


class SetOptions(NamedTuple):
    """One call that set options."""

    filesystem: int  # the number of the worker's filesystem
    options: tuple[Option, ...]
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

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        options = [
            [
                option.name,
                list(map(_as_json, option.values)),
                option.description,
                bool(option.per_file),
            ]
            for option in self.options
        ]
        return {**self._asdict(), "options": options}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> SetOptions:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        options = tuple(
            Option(name, tuple(map(_from_json, values)), description, per_file)
            for name, values, description, per_file in value["options"]
        )
        return cls(value["filesystem"], options, value["is_single"])


def _as_json(value: OptionValue) -> int | float | str:
    return value.hex() if isinstance(value, bytes) else value


def _from_json(value: int | float | str) -> OptionValue:  # noqa: PYI041  (both occur)
    return bytes.fromhex(value) if isinstance(value, str) else value


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

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        options = [given.as_dict() for given in self.options]
        return {**self._asdict(), "task": encode(self.task), "options": options}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Job:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        task = decode(Task, value["task"])
        schemes = None if value["schemes"] is None else tuple(value["schemes"])
        given = (value["bundled"], value["environment"], value["instance"])
        offered = None if value["offered"] is None else tuple(value["offered"])
        options = tuple(map(SetOptions.from_dict, value["options"]))
        return cls(task, *given, schemes, tuple(value["directories"]), offered, options)


class WorkerOffer(NamedTuple):
    """What a worker has loaded."""

    finding: Finding  # the schemes whose `init` succeeded, and what is wrong with the plugin
    # The tables of each of these schemes, in that order; a slot has no address, only whether the
    # plugin has it.
    tables: tuple[dict[str, Table], ...]
    stores: tuple[int, ...]  # for each scheme the number of the first one with the same files
    guarded: bool  # the plugin was bound to the guarded functions of its known defects
    limits: tuple[str, ...] = ()  # what it was restricted to, of `isolation.rights.ALL`

    @property
    def schemes(self) -> tuple[str, ...]:
        """What it serves, in the order of `tables`."""
        return () if self.finding.offer is None else self.finding.offer.schemes

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        schemes = tuple(
            tuple(
                _ReportedTable(t.kind, t.size, tuple(name for name, at in t.slots.items() if at))
                for t in tables.values()
            )
            for tables in self.tables
        )
        reported = _ReportedOffer(self.finding, schemes, self.stores, self.guarded, self.limits)
        return {**encode(reported)}

    @classmethod
    def from_dict(cls, value: Any) -> WorkerOffer:
        """Read what `as_dict` gave, in a process that does not trust the one that did.

        Raises `ValueError` if it has another shape.
        """
        given = decode(_ReportedOffer, value)
        tables = tuple({table.kind: table.as_table() for table in each} for each in given.schemes)
        offer = cls(given.finding, tables, given.stores, given.guarded, given.limits)
        if not len(tables) == len(given.stores) == len(offer.schemes):
            raise ValueError(f"expected tables and a store of {len(offer.schemes)} schemes")
        if any(FILESYSTEM_OPS.name not in found for found in tables):
            raise ValueError("expected a table of the filesystem for each scheme")
        if any(store > number for number, store in enumerate(given.stores)):
            raise ValueError("expected the number of an earlier scheme with the same files")
        if not set(given.limits) <= set(ALL):
            raise ValueError(f"expected limits of a worker, found {shown(given.limits)}")
        return offer


class _ReportedTable(NamedTuple):
    kind: str
    size: Annotated[int, between(8, 1 << 16)]
    slots: Annotated[tuple[str, ...], at_most(64)]

    def as_table(self) -> Table:
        kind, size = self.kind, self.size
        layout = filesystem_ops_layout(size) if kind == FILESYSTEM_OPS.name else _LAYOUTS.get(kind)
        if layout is None:
            raise ValueError(f"expected the name of a table, found {shown(kind)}")
        there = set(self.slots)
        known = {slot.name for slot in layout.slots if slot.end <= size}
        if not there <= known:
            raise ValueError(f"expected slots of {kind}, found {sorted(there - known)!r:.200}")
        return Table(kind, size, layout, {name: int(name in there) for name in known})


class _ReportedOffer(NamedTuple):
    finding: Finding
    schemes: Annotated[
        tuple[Annotated[tuple[_ReportedTable, ...], at_most(len(_LAYOUTS) + 1)], ...],
        at_most(MAX_SCHEMES),
    ]
    stores: tuple[Annotated[int, between(0, MAX_SCHEMES)], ...]
    guarded: bool
    limits: Annotated[tuple[str, ...], at_most(len(ALL))]
