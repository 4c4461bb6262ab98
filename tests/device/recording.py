"""The recording plugin from Python: choose how it behaves, read what was called."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.device.platform import load_device_platform
from modular_tf.device.registry import DeviceRegistry
from modular_tf.loading.binding import bind
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.device import Device
    from modular_tf.device.memory.memory_settings import MemorySettings
    from modular_tf.native.library import Library

SOURCE = Path(__file__).parent / "recording_plugin.cc"

_KINDS: dict[type, Any] = {bytes: ctypes.c_char_p, ctypes.c_void_p: ctypes.c_void_p}

THROWS = -1
LEAVES_OUTPUTS_ALONE = -2


class Callbacks(IntEnum):
    """How the plugin calls back."""

    AT_ONCE = 0
    ON_THREAD = 1
    REFUSED = 2
    DROPPED = 3
    REFUSED_AND_CALLED = 4
    TWICE = 5


def build_recording_plugin(name: str = "librecording.so") -> Path:
    """Compile the plugin, once per machine; under another name it is another plugin."""
    return link_library(name, [compile_object(SOURCE)], cxx=True)


class RecordingPlugin:
    """One mapped recording plugin; a process has one, so tests reset it."""

    def __init__(self, path: Path) -> None:
        self.library: Library = bind(str(path), [], frozenset())
        self._call("reset")

    def _call(
        self, name: str, *arguments: bytes | int | ctypes.c_void_p, result: Any = None
    ) -> Any:
        address = self.library.symbol(f"record_{name}")
        assert address, name
        kinds = [_KINDS.get(type(argument), ctypes.c_int) for argument in arguments]
        return ctypes.CFUNCTYPE(result, *kinds)(address)(*arguments)

    @contextmanager
    def devices(self, memory: MemorySettings | None = None) -> Iterator[list[Device]]:
        """Load the plugin, with what a user decided, and yield its two devices."""
        with load_device_platform(
            self.library,
            plugin_name="recording",
            memory=None if memory is None else lambda _: memory,
        ) as platform:
            registry = DeviceRegistry()
            registry.register(platform, plugin="recording")
            yield registry.devices("RECORDING")

    @property
    def calls(self) -> list[str]:
        """What was called, in order."""
        log: bytes = self._call("log", result=ctypes.c_char_p)
        return log.decode().splitlines()

    def count(self, slot: str) -> int:
        """Return how often a slot was called."""
        return sum(call.split()[0] == slot for call in self.calls)

    def clear(self) -> None:
        """Forget the calls so far."""
        self._call("clear")

    def record_into(self, other: RecordingPlugin, prefix: str) -> None:
        """Log into the other plugin's log from now on, each entry after a prefix."""
        log = ctypes.c_void_p(other._call("journal", result=ctypes.c_void_p))
        self._call("into", log, prefix.encode())

    def fail(self, slot: str, code: int) -> None:
        """Let a slot fail by a code, throw, or do nothing."""
        self._call("fail", slot.encode(), code)

    def heal(self) -> None:
        """Let all slots work again."""
        self._call("heal")

    def leave_out(self, *slots: str) -> None:
        """Load the plugin without some slots."""
        for slot in slots:
            self._call("leave_out", slot.encode())

    def without_timer_fns(self) -> None:
        """Load the plugin without create_timer_fns."""
        self._call("without_timer_fns")

    def use_bfc_allocator(self, mebibytes: int = 1 << 20, *, force_growth: bool = True) -> None:
        """Load the plugin as one that has so much memory, and wants it cut by the host."""
        self._call("bfc_allocator", mebibytes, int(force_growth))

    def give_null_handles(self) -> None:
        """Give NULL as every stream, event and timer."""
        self._call("null_handles")

    def say_of_events(self, status: int) -> None:
        """Report this of every event."""
        self._call("event_status", status)

    def call_back(self, how: Callbacks) -> None:
        """Choose how host callbacks come."""
        self._call("callbacks", int(how))

    def call_late(self) -> None:
        """Call what was refused."""
        self._call("call_late")

    def join(self) -> None:
        """Wait for the thread of a callback."""
        self._call("join")

    @property
    def allocated(self) -> int:
        """How many memories of any kind are alive."""
        return int(self._call("allocated", result=ctypes.c_int64))
