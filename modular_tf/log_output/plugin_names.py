"""Whose code an address is: the plugin, by the name under which users know it."""

from __future__ import annotations

import os
from functools import lru_cache

from modular_tf.discovery.naming import file_stem
from modular_tf.native.library import address_owner

_names: dict[str, str] = {}


def name_library(path: str, plugin: str) -> None:
    """Call what the library at `path` logs by the name of a plugin. [any thread]

    Without this, messages are called after the library's file, as most plugins are. Where services
    know one file under two names, the last one counts.
    """
    _names[os.path.realpath(path)] = plugin


def plugin_at(address: int) -> tuple[str | None, str | None]:
    """Return the name and the library of the code at an address; None for code of no library."""
    path = _path_at(address)
    if path is None:
        return None, None
    return _names.get(path) or _names.get(os.path.realpath(path)) or file_stem(path), path


@lru_cache(maxsize=4096)
def _path_at(address: int) -> str | None:
    owner = address_owner(address)
    return owner.path if owner is not None else None
