"""From a probed library to a mapped one, and to the tables that its init function leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.discovery.host_offer import STAND_IN_SONAMES
from modular_tf.errors import PluginError
from modular_tf.loading.binding import bind
from modular_tf.loading.filesystem_tables import (
    MAX_SCHEMES,
    FilesystemTables,
    RefusedTables,
    entry_pointers,
    read_entry,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import is_executable
from modular_tf.native.status import take_error
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from modular_tf.discovery.probe import Probe
    from modular_tf.native.library import Library

FILESYSTEM_INIT = "TF_InitPlugin"


def map_library(probe: Probe) -> Library:
    """Map the library of a candidate that the probe found loadable; its constructors run.

    Raises:
        PluginError: The dynamic linker refuses it (LD-050), or its need of TensorFlow's library
            cannot be led to the host (LD-053).
    """
    companions = [library.path for library in reversed(probe.libraries) if library.is_companion]
    return bind(probe.candidate.path, companions, STAND_IN_SONAMES)


@dataclass(frozen=True, slots=True)
class FilesystemOffer:
    """What `TF_InitPlugin` left behind, copied and checked; the plugin's own memory is freed.

    Attributes:
        entries: One per scheme, in the plugin's order.
        violations: Rules that concern the plugin as a whole; an error among them leaves no entry.
    """

    entries: tuple[FilesystemTables | RefusedTables, ...]
    violations: tuple[Violation, ...]


def init_filesystems(library: Library, *, plugin: str) -> FilesystemOffer:
    """Call `TF_InitPlugin` of a mapped library and take what it offers. [any thread]

    Raises:
        PluginError: The entry is missing or no code (LD-051), or threw (LD-052).
    """
    entry = library.symbol(FILESYSTEM_INIT)
    if entry is None or not is_executable(entry):
        raise PluginError(
            f"{library.path}: {FILESYSTEM_INIT} is not a function (rule LD-051)",
            plugin=plugin,
            rule="LD-051",
        )
    info = ffi.new("mtf_plugin_info *")
    error = lib.mtf_init_filesystem_plugin(ffi.cast("void *", entry), info)
    if error:
        cause = take_error(error, plugin=plugin, operation=FILESYSTEM_INIT)
        raise PluginError(
            f"{cause.message} (rule LD-052)", plugin=plugin, path=library.path, rule="LD-052"
        ) from cause
    violations = tuple(_check_info(info))
    if any(violation.is_error for violation in violations):
        return FilesystemOffer((), violations)
    return FilesystemOffer(_take_entries(info), violations)


def _check_info(info: Any) -> list[Violation]:
    found = []
    for rule_id, field, function in (
        ("FS-001", "plugin_memory_allocate", info.allocate),
        ("FS-002", "plugin_memory_free", info.free),
    ):
        if not function:
            found.append(Violation(rule_id, f"TF_FilesystemPluginInfo.{field} is NULL"))
        elif not is_executable(int(ffi.cast("uintptr_t", function))):
            found.append(Violation("FS-016", f"TF_FilesystemPluginInfo.{field} is not code"))
    if info.num_schemes > MAX_SCHEMES:
        message = f"num_schemes: found {info.num_schemes}, expected at most {MAX_SCHEMES}"
        found.append(Violation("FS-004", message))
    elif info.num_schemes and not info.ops:
        message = f"TF_FilesystemPluginInfo.ops is NULL, with num_schemes {info.num_schemes}"
        found.append(Violation("FS-003", message))
    elif not info.num_schemes:
        found.append(Violation("FS-005", "num_schemes is 0"))
    return found


def _take_entries(info: Any) -> tuple[FilesystemTables | RefusedTables, ...]:
    """Copy every entry, then free the plugin's: schemes and tables in order, the array last."""
    address, free = (int(ffi.cast("uintptr_t", value)) for value in (info.ops, info.free))
    entries = tuple(read_entry(address, index, free) for index in range(info.num_schemes))
    for index in range(info.num_schemes):
        for pointer in entry_pointers(address, index):
            _free(info.free, pointer)
    _free(info.free, address)
    return _without_repeats(entries)


def _free(plugin_free: Any, address: int) -> None:
    lib.mtf_error_free(lib.mtf_plugin_free(plugin_free, ffi.cast("void *", address)))


def _without_repeats(
    entries: tuple[FilesystemTables | RefusedTables, ...],
) -> tuple[FilesystemTables | RefusedTables, ...]:
    """Refuse a scheme that the plugin named before; the first one stays."""
    seen: set[str] = set()
    kept: list[FilesystemTables | RefusedTables] = []
    for entry in entries:
        if isinstance(entry, FilesystemTables) and entry.scheme in seen:
            message = f"scheme {entry.scheme!r} stands twice in TF_FilesystemPluginInfo.ops"
            kept.append(RefusedTables(entry.scheme, (Violation("FS-017", message),)))
        else:
            kept.append(entry)
        if isinstance(entry, FilesystemTables):
            seen.add(entry.scheme)
    return tuple(kept)
