"""A store in memory whose scheme counts as one of a network, with calls that are met or noted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import ESSENTIAL, MemoryStore, Only

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEME = "far"
AT_ONCE = 4
TOP = "store"  # the host of all URIs


class FarStore(MemoryStore):
    """Files by path, whose calls can be made to wait for each other.

    Attributes:
        barriers: By operation, how many calls of it have to be under way before one goes on.
        hooks: By operation, what is called with the path first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.barriers: dict[str, threading.Barrier] = {}
        self._to_wait: dict[str, int] = {}
        self._lock = threading.Lock()
        self.hooks: dict[str, Callable[[str], object]] = {}

    def enter(self, operation: str, uri: str) -> str:
        path = super().enter(operation, uri)
        if operation in self.hooks:
            self.hooks[operation](path)
        if path.startswith("/f") and self._is_to_wait(operation):
            self.barriers[operation].wait(timeout=60)
        return path

    def _is_to_wait(self, operation: str) -> bool:
        with self._lock:
            left = self._to_wait.get(operation, 0)
            self._to_wait[operation] = max(0, left - 1)
        return left > 0

    def meet(self, operation: str) -> None:
        """Let the first calls for `/f...` go on only when as many as are allowed are under way."""
        self.barriers[operation] = threading.Barrier(AT_ONCE)
        self._to_wait[operation] = AT_ONCE

    def has_met(self, operation: str) -> bool:
        """Return whether so many calls were under way together."""
        return self._to_wait[operation] == 0 and not self.barriers[operation].broken

    def most_at_once(self, operation: str) -> list[int]:
        """Note how many calls of an operation are under way at each of them; return the notes."""
        under_way, seen, lock = [], [], threading.Lock()

        def enter(path: str) -> None:
            with lock:
                under_way.append(path)
                seen.append(len(under_way))
            threading.Event().wait(0.005)  # so that a call too many would come meanwhile
            with lock:
                under_way.remove(path)

        self.hooks[operation] = enter
        return seen

    def count(self, operation: str) -> int:
        """Return how often an operation was called."""
        return sum(called == operation for called, *_ in self.calls)


def serve(store: MemoryStore) -> tuple[PluginService, ModularFileSystem]:
    """Return a service with the store, and its filesystem; the caller closes the service."""
    service = PluginService(bundled=False, config=Config(calls_at_once=AT_ONCE))
    service.register_filesystem(SCHEME, Only(store, (*ESSENTIAL, "rename_file")))
    return service, ModularFileSystem(SCHEME, service=service)
