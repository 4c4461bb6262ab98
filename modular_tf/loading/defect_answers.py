"""What the host can do differently for a plugin with known defects."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping


@dataclass(frozen=True, slots=True)
class Answers:
    r"""What the host does differently for one scheme of one plugin.

    Attributes:
        withhold: Operations that are treated as if the plugin did not have them.
        environment_defaults: Variables to set where they are unset.
        environment_forced: Variables to set whatever they were.
        environment_removed: Variables to unset.
        needs_library: Places of a library that the plugin opens at its first call, any of which
            will do; `$NAME` is a variable.
        endpoint_variables: Variables that may hold the URL of the server, first come first served.
        endpoint_switches: Variables whose mere presence means the URL they map to.
        endpoint_pattern: Where a URI names its server: groups `host` (with a port, maybe) and,
            where it is not http, `scheme`.
        spare_descriptors: How many file descriptors the process must have left before a call.
        forgotten_files: Paths of temporary files (a regular expression) whose first descriptor the
            plugin never closes, though it deletes them; it is closed when a writer has closed.
        missing_message: What an error's message holds (a regular expression) that is none of the
            plugin's NOT_FOUND and should be.
        max_read: Most bytes to ask for in one read.
        known_length_where: A variable with which the plugin survives no read at or behind the end;
            the length is asked for before the first read then, and appending, for which the plugin
            reads to the end, rewrites the file.
        first_read: Bytes to fetch when a file is opened: a short answer is the whole file, and a
            full one allows to tell whether the server honours ranges.
        overflow_message: What an error's message holds (a regular expression) when a server sent
            more than was asked for.
        read_block: Bytes to fetch at once after that, from which smaller reads are served.
        exists_by_stat: path_exists is answered by stat.
        stat_cache_seconds: How long what stat said stays good, for what cannot be written to.
        unmeasured_message: What an error's message of stat holds (a regular expression) when only
            the length could not be told; it is measured then.
        mtime_is_unknown: The time of change is reported as 0.
        mtime_counts_from_year_one: The time of change counts nanoseconds from the year 1, and
            overflowed.
        lookup: How to find out what is at a path
            (`modular_tf.filesystem.workarounds.store_lookup`); with one, the host enforces the
            rules of directories, which a store of objects does not have.
        root_depth: How many levels of a URI's path name the store's root.
        directory_marker: Directories are made by an empty object whose name ends in a slash.
        mark_parents: Before a directory is made, so are all above it: the plugin sees none that is
            there by its files alone.
        rename_by_copy: Renaming copies, then deletes; whole directories too.
        makes_no_empty_file: A file that got no byte cannot be closed, and what was there stays;
            that is said. The plugin copies empty files that others made.
        append_nothing_before_close: A writer that got no byte appends none before it closes.
        append_by_rewriting: Appending rewrites the file with its old content in front.
        count_position: tell is answered by counting.
        share_init: The filesystems of several services share what one init made, and the last of
            them that closes runs cleanup.
        cleanup_when_idle: Before cleanup, the plugin's threads get the time to let go of what they
            did last.
        reinitialise_after_fork: A forked child calls init anew.
        no_destructors_after_fork: A forked child ends without the C and C++ exit handlers that it
            inherited.
    """

    withhold: frozenset[str] = frozenset()
    environment_defaults: Mapping[str, str] = field(default_factory=dict)
    environment_forced: Mapping[str, str] = field(default_factory=dict)
    environment_removed: frozenset[str] = frozenset()
    needs_library: tuple[str, ...] = ()
    endpoint_variables: tuple[str, ...] = ()
    endpoint_switches: Mapping[str, str] = field(default_factory=dict)
    endpoint_pattern: str | None = None
    spare_descriptors: int | None = None
    forgotten_files: str | None = None
    missing_message: str | None = None
    max_read: int | None = None
    known_length_where: str | None = None
    first_read: int | None = None
    overflow_message: str | None = None
    read_block: int | None = None
    exists_by_stat: bool = False
    stat_cache_seconds: float = 0.0
    unmeasured_message: str | None = None
    mtime_is_unknown: bool = False
    mtime_counts_from_year_one: bool = False
    lookup: str | None = None
    root_depth: int = 0
    directory_marker: bool = False
    mark_parents: bool = False
    rename_by_copy: bool = False
    makes_no_empty_file: bool = False
    append_nothing_before_close: bool = False
    append_by_rewriting: bool = False
    count_position: bool = False
    share_init: bool = False
    cleanup_when_idle: bool = False
    reinitialise_after_fork: bool = False
    no_destructors_after_fork: bool = False

    def __bool__(self) -> bool:
        return self != NO_ANSWERS

    def prepare_environment(self, environment: MutableMapping[str, str]) -> list[str]:
        """Change the variables that the plugin reads; must run before its first call.

        Returns:
            What was changed against the user's will, one sentence each.
        """
        changed = []
        for name, value in self.environment_defaults.items():
            environment.setdefault(name, value)
        for name, value in self.environment_forced.items():
            if environment.get(name, value) != value:
                changed.append(f"{name} was set to {value!r}, from {environment[name]!r}")
            environment[name] = value
        present = sorted(self.environment_removed & environment.keys())
        return changed + [f"{name} was unset, from {environment.pop(name)!r}" for name in present]


NO_ANSWERS = Answers()
_KINDS = {entry.name: type(getattr(NO_ANSWERS, entry.name)) for entry in fields(Answers)}


def typed_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Bring a row's TOML values into the types of `Answers`.

    Raises:
        ValueError: A field does not exist.
    """
    if unknown := answer.keys() - _KINDS.keys():
        raise ValueError(f"known_defects.toml: unknown answers {sorted(unknown)}")
    return {n: _KINDS[n](v) if isinstance(v, list) else v for n, v in answer.items()}
