"""The plugin whose code is at an address, by its name for users."""

from __future__ import annotations

import os
from contextlib import suppress

from modular_tf.discovery.naming import file_stem

_DESCRIPTORS = "/proc/self/fd/"
_MOST = 4096  # call sites that are remembered

_names: dict[str, str] = {}
_paths: dict[int, str] = {}


def name_library(path: str, plugin: str) -> None:
    """Set the plugin name for messages of the library at `path`. [any thread]

    Without this, messages are called after the library's file, as most plugins are. Where services
    know one file under two names, the last one counts.
    """
    _names[path] = plugin


def plugin_at(address: int) -> tuple[str | None, str | None]:
    """Return the name and the library of the code at an address; None for code of no library."""
    path = _paths.get(address) or _look_up(address)
    return (None, None) if path is None else (_names.get(path) or file_stem(path), path)


def _look_up(address: int) -> str | None:
    from modular_tf.native.library import address_owner  # noqa: PLC0415  (naming needs none of it)

    owner = address_owner(address)
    if owner is None:
        return None
    if owner.path.startswith(_DESCRIPTORS):
        return _behind(owner.path)
    if len(_paths) >= _MOST:
        _paths.clear()
    _paths[address] = owner.path
    return owner.path


def _behind(descriptor: str) -> str:
    """Return what a library is that is still being mapped, and not known by its file's path yet."""
    with suppress(OSError):
        target = os.readlink(descriptor)
        return target.removeprefix("/memfd:").removesuffix(" (deleted)")
    return descriptor
