"""Filesystems of plugins with known defects: a module for each store has all its workarounds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from modular_tf.loading.published import known_stores, stores_of

if TYPE_CHECKING:
    from modular_tf.filesystem.workarounds.store import Store


def store_class(library: str, scheme: str) -> type[Store] | None:
    """Return the class for a scheme of a library; None for a plugin without known defects."""
    for store in stores_of(library):
        if scheme in store.schemes:
            return _imported(store.implementation)
    return None


def import_stores() -> None:
    """Import all classes, in a process whose forks may need them."""
    for store in known_stores():
        _imported(store.implementation)


def _imported(implementation: str) -> type[Store]:
    module, _, name = implementation.partition(".")
    return cast("type[Store]", getattr(import_module(f"{__name__}.{module}"), name))
