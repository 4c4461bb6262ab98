"""Functions that plugins with known defects are bound to in place of the C++ library's.

A plugin that takes for granted how a store answers may take the process down where it answers
otherwise. What stands in for a function that it calls then prevents that (`stream_guard.cc`).
"""

from __future__ import annotations

from modular_tf.loading.known_defects import stores_of
from modular_tf.native.runtime_library import guarded_stream_function

_guarded: set[str] = set()


def guards(library: str, *, own_scope_first: bool) -> dict[str, int]:
    """Return the addresses of the functions that a library is bound to, by their names.

    Args:
        library: The library's file, which is about to be mapped.
        own_scope_first: Whether it is bound to its own scope before the process's.
    """
    wanted = {name for store in stores_of(library) for name in store.guarded_functions}
    found: dict[str, int] = {}
    for name in wanted:
        function = guarded_stream_function(name, own_scope_first=own_scope_first)
        if function is not None:
            found[name] = function
    if wanted and len(found) == len(wanted):
        _guarded.add(library)
    return found


def share_guards(mapped: str, path: str) -> None:
    """Note that a file is a mapped one under another path."""
    if mapped in _guarded:
        _guarded.add(path)


def is_guarded(library: str) -> bool:
    """Return whether a mapped library was bound to all the functions that its rows ask for."""
    return library in _guarded
