"""The lifetime plugin from Python: hold its functions, and read what was used too late."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.device.platform import load_device_platform
from modular_tf.device.registry import DeviceRegistry
from modular_tf.loading.binding import bind
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.native.library import Library

SOURCE = Path(__file__).parent / "lifetime_plugin.cc"

KINDS = (
    "device", "device memory", "event", "host memory", "stream", "timer", "unified memory",
)  # fmt: skip
"""What the plugin makes."""

_ARGUMENTS: dict[type, Any] = {
    bytes: ctypes.c_char_p,
    int: ctypes.c_int,
    ctypes.c_void_p: ctypes.c_void_p,
}


def build_lifetime_plugin() -> Path:
    """Compile the plugin, once per machine."""
    return link_library("liblifetime.so", [compile_object(SOURCE)], cxx=True)


def await_ends() -> None:
    """Wait for the threads that end streams and devices."""
    while any(thread.name.startswith("end of ") for thread in threading.enumerate()):
        time.sleep(0.0005)


class LifetimePlugin:
    """One mapped lifetime plugin; a process has one, so tests reset it."""

    def __init__(self, path: Path) -> None:
        self.library: Library = bind(str(path), [], frozenset())
        self.reset()

    def _call(
        self, name: str, *arguments: bytes | int | ctypes.c_void_p, result: Any = None
    ) -> Any:
        address = self.library.symbol(f"life_{name}")
        assert address, name
        kinds = [_ARGUMENTS[type(argument)] for argument in arguments]
        return ctypes.CFUNCTYPE(result, *kinds)(address)(*arguments)

    def reset(self) -> None:
        """Forget faults, gates and what is alive; nothing is loaded."""
        self._call("reset")

    @contextmanager
    def platform(self, memory: MemorySettings | None = None) -> Iterator[DevicePlatform]:
        """Load the plugin's platform; in the end nothing is held and it is closed."""
        platform = load_device_platform(
            self.library, plugin_name="lifetime", memory=lambda _: memory or MemorySettings()
        )
        try:
            yield platform
        finally:
            self._call("let_all_go")
            platform.close()

    @contextmanager
    def devices(self, memory: MemorySettings | None = None) -> Iterator[list[Device]]:
        """Load the plugin, with what a user decided, and yield its two devices."""
        with self.platform(memory) as platform:
            registry = DeviceRegistry()
            registry.register(platform, plugin="lifetime")
            yield registry.devices("LIFETIME")

    def use_bfc_allocator(self) -> None:
        """Load the plugin as one that wants its memory cut by the host."""
        self._call("use_bfc_allocator")

    def hold(self, name: str, most: int = 1000) -> None:
        """Let the next calls of a function wait at its begin, or with "work" what streams do."""
        self._call("hold", name.encode(), most)

    def let_go(self, name: str) -> None:
        """Let them go on."""
        self._call("let_go", name.encode())

    def wait_until_held(self, name: str, *threads: threading.Thread) -> None:
        """Wait until a call waits there, or the threads that could come there have ended."""
        while not self._call("held", name.encode(), result=ctypes.c_int):
            if threads and not any(thread.is_alive() for thread in threads):
                return
            time.sleep(0.0005)

    def synchronize_in(self, slot: str) -> None:
        """Let a function wait for all work of its device before it does its own."""
        self._call("synchronize_in", slot.encode())

    def give_next(self, address: int) -> None:
        """Let the next allocation return this address."""
        self._call("give_next", ctypes.c_void_p(address))

    @property
    def outstanding(self) -> int:
        """How many pieces of work all streams have."""
        return int(self._call("outstanding", result=ctypes.c_int))

    def alive(self, kind: str) -> int:
        """Return how many objects of a kind were made and not given back."""
        return int(self._call("alive", kind.encode(), result=ctypes.c_int))

    @property
    def left(self) -> dict[str, int]:
        """What was made and not given back, by kind, without what there is none of."""
        return {kind: n for kind in KINDS if (n := self.alive(kind))}

    @property
    def faults(self) -> list[str]:
        """What was used after it had been given back, or given back out of order."""
        text: bytes = self._call("faults", result=ctypes.c_char_p)
        return text.decode().splitlines()
