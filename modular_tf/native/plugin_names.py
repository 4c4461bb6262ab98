"""Names of plugins for the native core, which reports calls by them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.errors import ResourceExhaustedError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Iterable

_made: dict[tuple[str, str, str], Any] = {}
_named: dict[str, Any] = {}
_of_path: dict[str, Any] = {}


def name_plugin(name: str, path: str, record: str = "") -> None:
    """Set the name of a plugin for what is loaded or created from now on. [any thread]

    Where services know two files by one name, the last one counts. `record` begins the note that
    the process leaves when it ends in a call; empty for no note.
    """
    known = (name, path, record)
    made = _made.get(known)
    if made is None:  # kept for good: the core reads it in signal handlers
        made = _made[known] = lib.mtf_plugin_new(_bytes(name), os.fsencode(path), _bytes(record))
        if not made:
            lib.mtf_error_free(lib.mtf_take_error())
            raise ResourceExhaustedError(f"no memory for the name of the plugin {name}")
    _named[name] = made
    _of_path[path] = made


def note_code(path: str, addresses: Iterable[int]) -> None:
    """Record that the mapped objects at some addresses are code of a plugin.

    They stay mapped for good. If a process ends in that code, the plugin's name is reported.
    Nothing is recorded for a plugin without a name.
    """
    made = _of_path.get(path)
    for address in addresses if made is not None else ():
        lib.mtf_plugin_has_code(made, address)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace").replace(b"\0", b"?")


def named(name: str) -> Any:
    """Return the core's handle of a plugin's name; NULL for a plugin without a name."""
    return _named.get(name, ffi.NULL)
