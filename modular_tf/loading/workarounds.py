"""The workarounds that the host has for plugins with known defects."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping


@dataclass(frozen=True, slots=True)
class Workarounds:
    r"""What the host does differently for one scheme of one plugin.

    All patterns are regular expressions.

    Attributes:
        disabled_operations: Operations that are treated as if the plugin did not have them.
        environment_defaults: Variables to set if they are unset.
        guarded_functions: Functions of the C++ library, by their mangled names, after whose calls
            the plugin crashes where a store answers oddly; it is bound to others, which prevent it.
        environment_where_guarded: Variables to set if they are unset and the plugin was bound to
            all of these functions.
        environment_forced: Variables to set in any case.
        environment_removed: Variables to unset.
        needs_library: Places of a library that the plugin opens at its first call, any of which
            is enough; `$NAME` is an environment variable.
        endpoint_variables: Variables that may hold the URL of the server; the first that is set
            counts.
        endpoint_switches: Variables whose presence selects the URL that they map to.
        endpoint_pattern: Finds the server in a URI: group `host` (with or without a port) and,
            unless it is http, group `scheme`.
        endpoint_default: The host of the server where no variable names one; it must have an
            address, or the network is away.
        endpoint_without_scheme: The scheme that the plugin assumes where the variable has none.
        environment_copies: Variables to set if they are unset, each with those whose value they
            get: the first that is set.
        unread_setting: A setting in a file of the user that the plugin ignores; see
            `modular_tf.loading.unread_settings`.
        confirm_missing: The plugin's NOT_FOUND may be a refusal: one byte is read to find out.
        missing_store_message: Matches the messages of errors that mean that the whole bucket or
            container is missing.
        remedies: Regular expressions for messages of errors, each with what to do about it.
        credential_variables: The variables that hold the credentials.
        other_credentials: Where they come from if none of these is set.
        min_free_descriptors: How many file descriptors must be free before a call.
        leaked_files: Paths of temporary files whose first descriptor the plugin never closes,
            though it deletes them; the host closes it after a writer was closed.
        not_found_message: Matches the messages of errors that mean NOT_FOUND, though the plugin
            sets another status.
        denied_message: Matches the messages of errors that mean PERMISSION_DENIED, likewise.
        max_read: Most bytes to request in one read.
        read_at_once: Bytes to request in each read where several are made at once.
        bounded_reads_variable: A variable with which the plugin crashes on a read at or behind the
            end. If it is set, the length is asked for before the first read, and appending, for
            which the plugin reads to the end, rewrites the file; not where the plugin was bound
            to `guarded_functions`.
        counts_before_read: A read returns the number of bytes that the length promised just before,
            though the file may have changed since: where the memory was not written to, and at the
            end of the file, the length is asked for again.
        first_read: Bytes to read when a file is opened: a short result is the whole file, and a
            full one allows a check whether the server honours ranges.
        overflow_message: Matches the messages of errors that mean that a server sent more than was
            requested.
        read_block: Bytes to read at once after that; smaller reads are served from them.
        exists_by_stat: path_exists calls stat.
        stat_cache_seconds: How long a result of stat is reused, for read-only schemes.
        unknown_length_message: Matches the messages of errors of stat that mean that only the
            length is unknown; the host reads the file to count its bytes.
        mtime_is_unknown: The modification time is reported as 0.
        mtime_counts_from_year_one: The plugin counts the modification time in nanoseconds from the
            year 1, with an overflow.
        lookup: How to find out what exists at a path
            (`modular_tf.filesystem.workarounds.store_lookup`); if set, the host enforces the rules
            of directories, which an object store does not have.
        length_by_size: A length is asked for by get_file_size, where stat takes more requests; an
            answer of 0 and an error are looked up.
        length_by_read: A length that was told before is confirmed by a read at the end of the file,
            where stat takes more requests.
        root_depth: How many levels of a URI's path name the store's root.
        directory_marker: A directory is created as an empty object whose name ends in a slash.
        create_parents: All parents of a directory are created before it: the plugin does not see
            a directory that exists only as a prefix of names.
        rename_by_copy: Renaming copies and then deletes files, and whole directories too.
        cannot_write_empty_file: The plugin cannot close an empty file and keeps the old content;
            the error says so. The plugin can copy empty files that others created.
        append_zero_bytes_before_close: A writer that got no bytes appends zero bytes before it
            closes, which creates the file.
        append_by_rewriting: Appending writes the file again with its old content first.
        count_position: tell is computed by counting the bytes that were appended.
        share_init: The filesystems of several services share the result of one init, and the last
            one that closes runs cleanup.
        stores_at_cleanup: A writer that is cleaned up without a close stores what was written, so
            the host holds everything until the writer is closed.
        cleanup_when_idle: Cleanup waits until the plugin's threads are idle.
        reinitialise_after_fork: A forked child calls init again.
        no_destructors_after_fork: A forked child exits without the C and C++ exit handlers that it
            inherited.
    """

    disabled_operations: frozenset[str] = frozenset()
    environment_defaults: Mapping[str, str] = field(default_factory=dict)
    guarded_functions: frozenset[str] = frozenset()
    environment_where_guarded: Mapping[str, str] = field(default_factory=dict)
    environment_forced: Mapping[str, str] = field(default_factory=dict)
    environment_removed: frozenset[str] = frozenset()
    needs_library: tuple[str, ...] = ()
    endpoint_variables: tuple[str, ...] = ()
    endpoint_switches: Mapping[str, str] = field(default_factory=dict)
    endpoint_pattern: str | None = None
    endpoint_default: str | None = None
    endpoint_without_scheme: str | None = None
    environment_copies: Mapping[str, list[str]] = field(default_factory=dict)
    unread_setting: Mapping[str, str] = field(default_factory=dict)
    confirm_missing: bool = False
    missing_store_message: str | None = None
    remedies: Mapping[str, str] = field(default_factory=dict)
    credential_variables: tuple[str, ...] = ()
    other_credentials: str = ""
    min_free_descriptors: int | None = None
    leaked_files: str | None = None
    not_found_message: str | None = None
    denied_message: str | None = None
    max_read: int | None = None
    read_at_once: int | None = None
    bounded_reads_variable: str | None = None
    counts_before_read: bool = False
    first_read: int | None = None
    overflow_message: str | None = None
    read_block: int | None = None
    exists_by_stat: bool = False
    stat_cache_seconds: float = 0.0
    unknown_length_message: str | None = None
    mtime_is_unknown: bool = False
    mtime_counts_from_year_one: bool = False
    lookup: str | None = None
    length_by_size: bool = False
    length_by_read: bool = False
    root_depth: int = 0
    directory_marker: bool = False
    create_parents: bool = False
    rename_by_copy: bool = False
    cannot_write_empty_file: bool = False
    append_zero_bytes_before_close: bool = False
    append_by_rewriting: bool = False
    count_position: bool = False
    share_init: bool = False
    stores_at_cleanup: bool = False
    cleanup_when_idle: bool = False
    reinitialise_after_fork: bool = False
    no_destructors_after_fork: bool = False

    def __bool__(self) -> bool:
        return self != NO_WORKAROUNDS

    def where_guarded(self) -> Workarounds:
        """Return the workarounds for a plugin that was bound to `guarded_functions`."""
        defaults = {**self.environment_defaults, **self.environment_where_guarded}
        return replace(self, environment_defaults=defaults, bounded_reads_variable=None)

    def in_worker(self, guarded: bool) -> Workarounds:  # noqa: FBT001  (of the worker)
        """Return what is left to do in the application for a plugin that runs in a worker.

        Args:
            guarded: Whether the worker bound the plugin to `guarded_functions`.
        """
        left = self.where_guarded() if guarded else self
        return replace(
            left,
            needs_library=(),
            min_free_descriptors=None,
            leaked_files=None,
            share_init=False,
            cleanup_when_idle=False,
            reinitialise_after_fork=False,
            no_destructors_after_fork=False,
        )

    def prepare_environment(self, environment: MutableMapping[str, str]) -> list[str]:
        """Change the environment variables that the plugin reads; call this before its first call.

        Returns:
            One sentence for each variable whose value the user had set and that was changed.
        """
        changed = []
        for name, value in self.environment_defaults.items():
            environment.setdefault(name, value)
        for name, others in self.environment_copies.items():
            given = [environment[other] for other in others if environment.get(other)]
            if given:
                environment.setdefault(name, given[0])
        for name, value in self.environment_forced.items():
            if environment.get(name, value) != value:
                changed.append(f"{name} was set to {value!r}, from {environment[name]!r}")
            environment[name] = value
        present = sorted(self.environment_removed & environment.keys())
        return changed + [f"{name} was unset, from {environment.pop(name)!r}" for name in present]


NO_WORKAROUNDS = Workarounds()
_KINDS = {entry.name: type(getattr(NO_WORKAROUNDS, entry.name)) for entry in fields(Workarounds)}


def typed_workarounds(workaround: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's TOML values as the types of `Workarounds`.

    Raises:
        ValueError: A field does not exist.
    """
    if unknown := workaround.keys() - _KINDS.keys():
        raise ValueError(f"known_defects.toml: unknown workarounds {sorted(unknown)}")
    return {n: _KINDS[n](v) if isinstance(v, list) else v for n, v in workaround.items()}
