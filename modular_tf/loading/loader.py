"""Mapping a probed library, and reading the tables that its init function registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.errors import PluginError
from modular_tf.loading.binding import bind
from modular_tf.loading.filesystem_tables import (
    MAX_SCHEMES,
    FilesystemTables,
    RefusedTables,
    handed_over,
    read_entry,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.plugin_names import named
from modular_tf.native.readonly_memory import try_read
from modular_tf.native.status import drop, take_error
from modular_tf.rules import Violation
from modular_tf.rules import filesystem as rules
from modular_tf.rules.loading import INIT_RETURNS, INIT_SYMBOL_IS_CODE, MAPPABLE
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.native.library import Library

FILESYSTEM_INIT = "TF_InitPlugin"


def map_file(
    path: str,
    companions: Sequence[str],
    absent: Sequence[str] = (),
    *,
    checked: Sequence[SeenFile] | None = None,
    sealed: bool = False,
) -> Library:
    """Return the mapped library of a plugin that the probe found loadable; constructors run.

    The arguments are those of `bind`, from `LoadFacts` and `TrustVerdict`.

    Raises:
        PluginError: The dynamic linker refuses it (LD-050), or its search path cannot be led away
            from the current directory (LD-097); or a file is not the one that was checked (LD-082).
        ShortageError: It cannot be mapped now, as this process has too little of something.
    """
    try:
        return bind(path, companions, REPLACED_SONAMES, absent, checked=checked, sealed=sealed)
    except OSError as error:  # gone or changed since the probe, ...
        raise_shortage(error)
        message = f"{path}: cannot be mapped: {error}"
        raise Violation(MAPPABLE, message, path=path).error(PluginError) from error


@dataclass(frozen=True, slots=True)
class FilesystemOffer:
    """What `TF_InitPlugin` registered, copied and checked; the plugin's memory is freed."""

    entries: tuple[FilesystemTables | RefusedTables, ...]  # one per scheme, in the plugin's order
    violations: tuple[Violation, ...]  # of the plugin as a whole; an error leaves no entry


def init_filesystems(library: Library, *, plugin: str) -> FilesystemOffer:
    """Return what `TF_InitPlugin` of a mapped library registers. [any thread]

    Raises `PluginError` as `call_init_plugin`.
    """
    info = ffi.new("mtf_plugin_info *")
    call_init_plugin(library, info, plugin=plugin)
    return take_offer(info)


def call_init_plugin(library: Library, info: Any, *, plugin: str) -> None:
    """Call `TF_InitPlugin` of a mapped library on an `mtf_plugin_info`, which it zeroes first.

    Raises `PluginError` if the entry is missing or no code (LD-051), or threw (LD-052).
    """
    entry = library.symbol(FILESYSTEM_INIT)
    if entry is None or not is_executable(entry):
        message = f"{library.path}: {FILESYSTEM_INIT} is not a function"
        raise Violation(INIT_SYMBOL_IS_CODE, message).error(PluginError, plugin=plugin)
    error = lib.mtf_init_filesystem_plugin(ffi.cast("void *", entry), named(plugin), info)
    if error:
        cause = take_error(error, plugin=plugin, operation=FILESYSTEM_INIT)
        raise PluginError(
            f"{cause.message} (rule {INIT_RETURNS})",
            plugin=plugin,
            path=library.path,
            rule=INIT_RETURNS,
        ) from cause


def take_offer(info: Any) -> FilesystemOffer:
    """Return the checked copy of a filled `mtf_plugin_info`, and free its blocks."""
    violations = tuple(_check_info(info))
    if any(violation.is_error for violation in violations):
        return FilesystemOffer((), violations)
    address, allocate, free = (
        int(ffi.cast("uintptr_t", value)) for value in (info.ops, info.allocate, info.free)
    )
    entries = tuple(
        read_entry(address, index, (allocate, free)) for index in range(info.num_schemes)
    )
    return FilesystemOffer(_without_repeats(entries), (*violations, *_free_all(info)))


def _check_info(info: Any) -> list[Violation]:
    found = []
    for broken, field, function in (
        (rules.ALLOCATE_SET, "plugin_memory_allocate", info.allocate),
        (rules.FREE_SET, "plugin_memory_free", info.free),
    ):
        if not function:
            message = f"TF_FilesystemPluginInfo.{field}: expected a function, found NULL"
            found.append(Violation(broken, message))
        elif not is_executable(address := int(ffi.cast("uintptr_t", function))):
            found.append(rules.not_code(f"TF_FilesystemPluginInfo.{field}", address))
    if info.num_schemes > MAX_SCHEMES:
        message = f"num_schemes: expected at most {MAX_SCHEMES}, found {info.num_schemes}"
        found.append(Violation(rules.SCHEMES_BOUNDED, message))
    elif info.num_schemes and not info.ops:
        message = f"TF_FilesystemPluginInfo.ops: expected {info.num_schemes} entries, found NULL"
        found.append(Violation(rules.OPS_READABLE, message))
    elif not info.num_schemes:
        found.append(Violation(rules.SCHEMES_OFFERED, "num_schemes: expected at least 1, found 0"))
    return found


def _free_all(info: Any) -> list[Violation]:
    """Free the plugin's blocks, each once; return those that it cannot have allocated.

    A `free` that is given anything else usually ends the process.
    """
    found = []
    freed = set()
    for name, pointer in list(handed_over(int(ffi.cast("uintptr_t", info.ops)), info.num_schemes)):
        why = _why_not_allocated(pointer) or ("the block of another" if pointer in freed else None)
        if pointer and why is not None:
            found.append(
                Violation(
                    rules.BLOCKS_ALLOCATED, f"{name}: expected a block of its own, found {why}"
                )
            )
        else:
            freed.add(pointer)
            # An exception that the plugin's free throws is dropped.
            drop(lib.mtf_plugin_free(info.free, ffi.cast("void *", pointer)))
    return found


def _why_not_allocated(address: int) -> str | None:
    if try_read(address, 1) is None:
        return f"{address:#x}, where no memory is mapped"
    owner = address_owner(address)
    return None if owner is None else f"memory of {owner.path} itself"


def _without_repeats(
    entries: tuple[FilesystemTables | RefusedTables, ...],
) -> tuple[FilesystemTables | RefusedTables, ...]:
    """Return the entries; one that repeats a scheme is replaced by a refusal."""
    seen: set[str] = set()
    kept: list[FilesystemTables | RefusedTables] = []
    for entry in entries:
        if isinstance(entry, FilesystemTables) and entry.scheme in seen:
            message = f"scheme {entry.scheme!r} stands twice in TF_FilesystemPluginInfo.ops"
            kept.append(RefusedTables(entry.scheme, (Violation(rules.SCHEME_NAMED_ONCE, message),)))
        else:
            kept.append(entry)
        if isinstance(entry, FilesystemTables):
            seen.add(entry.scheme)
    return tuple(kept)
