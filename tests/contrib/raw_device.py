"""A device plugin called slot by slot, as a careful host would, in a child process."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref
from itertools import count
from typing import Any

from tests.contrib import device_tables as tables
from tests.contrib.outcome import OK, Outcome
from tests.contrib.status_calls import Runtime

_ANY_SLOT = ctypes.CFUNCTYPE(None).__mro__[1]
"""What every function pointer type of ctypes derives from."""


def _fresh(kind: Any, size: int | None = None) -> Any:
    made = kind()
    made.struct_size = ctypes.sizeof(kind) if size is None else size
    return made


class RawDevice:
    """One device of a plugin. Memory, streams, events and timers go by numbers."""

    def __init__(
        self, runtime: str, plugin: str, ordinal: str = "0", platform_bytes: str = ""
    ) -> None:
        self._runtime = Runtime(runtime)
        self._library = ctypes.CDLL(plugin, mode=os.RTLD_NOW)
        self._platform = _fresh(tables.Platform, int(platform_bytes or tables.PLATFORM_BYTES))
        self._fns = _fresh(tables.PlatformFns)
        self._params = _fresh(tables.Params)
        self._params.platform = ctypes.pointer(self._platform)
        self._params.fns = ctypes.pointer(self._fns)
        self._params.patch = 1
        self._numbers = count(1)
        self._things: dict[int, Any] = {}
        self._log: list[str] = []
        self._gates: dict[int, threading.Event] = {}
        self._callbacks: list[Any] = []
        self._init = self._library.SE_InitPlugin
        self._init.argtypes, self._init.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        self.started = self._status_call(self._init, byref(self._params))
        if self.started.code == 0:
            self._make_device(int(ordinal))

    def _make_device(self, ordinal: int) -> None:
        platform = byref(self._platform)
        self._devices: dict[int, Any] = {}
        created = self.switch(ordinal)
        self._device_fns = _fresh(tables.DeviceFns)
        device_fns = _fresh(tables.CreateDeviceFns)
        device_fns.device_fns = ctypes.pointer(self._device_fns)
        self._executor = _fresh(tables.Executor)
        executor = _fresh(tables.CreateExecutor)
        executor.executor = ctypes.pointer(self._executor)
        self._timer_fns = _fresh(tables.TimerFns)
        self.made = [
            created,
            self._status_call(self._fns.create_device_fns, platform, byref(device_fns)),
            self._status_call(self._fns.create_stream_executor, platform, byref(executor)),
            self._status_call(self._fns.create_timer_fns, platform, byref(self._timer_fns)),
        ]

    # -- platform and device ----------------------------------------------------------------------

    def start(self) -> Outcome:
        """How SE_InitPlugin went."""
        return self.started

    def facts(self) -> dict[str, Any]:
        """What the plugin filled into its structs, and which slots it left NULL."""
        structs = {
            "platform": self._platform,
            "fns": self._fns,
            "device": self._device,
            "device_fns": self._device_fns,
            "executor": self._executor,
            "timer_fns": self._timer_fns,
        }
        return {
            "made": self.made,
            "sizes": {name: made.struct_size for name, made in structs.items()},
            "name": self._platform.name,
            "type": self._platform.type,
            "null": [f"{n}.{s}" for n, made in structs.items() for s in _null_slots(made)],
            "ordinal": self._device.ordinal,
            "hardware_name": self._device.hardware_name,
            "vendor": self._device.device_vendor,
            "pci_bus_id": self._device.pci_bus_id,
            "flags": (
                self._platform.supports_unified_memory,
                self._platform.use_bfc_allocator,
                self._platform.force_memory_growth,
            ),
        }

    def device_count(self) -> Outcome:
        """The value is the count."""
        number = ctypes.c_int(-1)
        outcome = self._status_call(
            self._fns.get_device_count, byref(self._platform), byref(number)
        )
        return outcome._replace(value=number.value)

    def switch(self, ordinal: int) -> Outcome:
        """Make a device, unless it is there, and let the calls that follow go to it."""
        if ordinal in self._devices:
            self._device = self._devices[ordinal]
            return Outcome(OK, "")
        self._device = self._devices[ordinal] = _fresh(tables.Device)
        params = _fresh(tables.CreateDevice)
        params.ordinal, params.device = ordinal, ctypes.pointer(self._device)
        return self._status_call(self._fns.create_device, byref(self._platform), byref(params))

    def measure(self, slot: str) -> float:
        """A number of SP_DeviceFns."""
        answer: float = getattr(self._device_fns, slot)(byref(self._device))
        return answer

    def end(self) -> None:
        """Destroy everything of the platform, in the order that hosts do."""
        platform = byref(self._platform)
        for device in self._devices.values():
            self._fns.destroy_device(platform, byref(device))
        self._fns.destroy_device_fns(platform, byref(self._device_fns))
        self._fns.destroy_stream_executor(platform, byref(self._executor))
        self._fns.destroy_timer_fns(platform, byref(self._timer_fns))
        self._params.destroy_platform(byref(self._platform))
        self._params.destroy_platform_fns(byref(self._fns))

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, size: int) -> tuple[int, int]:
        """A number for device memory, and its address (0: there was none)."""
        memory = tables.Memory()
        self._executor.allocate(byref(self._device), size, 0, byref(memory))
        if memory.opaque and memory.size != size:
            raise AssertionError(f"asked for {size} bytes, the struct says {memory.size}")
        return self._keep(memory), memory.opaque or 0

    def deallocate(self, memory: int) -> None:
        """Give device memory back the way TensorFlow does: by the address alone."""
        bare = _fresh(tables.Memory)
        bare.opaque = self._things.pop(memory).opaque
        self._executor.deallocate(byref(self._device), byref(bare))

    def deallocate_address(self, address: int | None) -> None:
        """Give an address back that may not be the plugin's."""
        bare = _fresh(tables.Memory)
        bare.opaque = address
        self._executor.deallocate(byref(self._device), byref(bare))

    def part(self, memory: int, offset: int) -> int:
        """A number for what begins `offset` bytes inside a memory, as hosts that pool make it."""
        inside = _fresh(tables.Memory)
        inside.opaque = self._things[memory].opaque + offset
        return self._keep(inside)

    def plain_memory(self, kind: str, size: int) -> int:
        """Allocate "host" or "unified" memory, fill and check it, free it; returns the address."""
        allocate = getattr(self._executor, f"{kind}_memory_allocate")
        address: int = allocate(byref(self._device), size)
        ctypes.memset(address, 0x5A, size)
        if ctypes.string_at(address, size) != b"\x5a" * size:
            raise AssertionError("the memory does not hold what was written")
        getattr(self._executor, f"{kind}_memory_deallocate")(byref(self._device), address)
        return address

    def plain_memory_address(self, kind: str, size: int) -> int | None:
        """Allocate "host" or "unified" memory that is too much; None: there was none."""
        address: int | None = getattr(self._executor, f"{kind}_memory_allocate")(
            byref(self._device), size
        )
        return address

    def free_plain(self, kind: str, address: int | None) -> None:
        """Give an address back that may not be the plugin's."""
        getattr(self._executor, f"{kind}_memory_deallocate")(byref(self._device), address)

    def statistics(self) -> dict[str, int]:
        """The allocator's statistics."""
        found = _fresh(tables.Statistics)
        if not self._executor.get_allocator_stats(byref(self._device), byref(found)):
            raise AssertionError("no statistics")
        return {name: getattr(found, name) for name, _ in tables.Statistics._fields_}

    def usage(self) -> tuple[int, int, int]:
        """Whether it is known, free bytes, total bytes."""
        free, total = ctypes.c_int64(-1), ctypes.c_int64(-1)
        known = self._executor.device_memory_usage(byref(self._device), byref(free), byref(total))
        return known, free.value, total.value

    # -- host buffers -----------------------------------------------------------------------------

    def host_buffer(self, data: bytes) -> int:
        """A number for host memory that holds `data`."""
        return self._keep(ctypes.create_string_buffer(data, len(data)))

    def host_bytes(self, buffer: int) -> bytes:
        """What a host buffer holds now."""
        data: bytes = self._things[buffer].raw
        return data

    def pinned(self, data: bytes) -> int:
        """A number for memory of host_memory_allocate that holds `data`."""
        address = self._executor.host_memory_allocate(byref(self._device), len(data))
        ctypes.memmove(address, data, len(data))
        return self._keep(ctypes.c_void_p(address))

    def unpin(self, buffer: int, size: int) -> bytes:
        """Free what `pinned` made; returns what it held."""
        address = self._things.pop(buffer)
        data = ctypes.string_at(address, size)
        self._executor.host_memory_deallocate(byref(self._device), address)
        return data

    def carries(self, stream: int, block: bytes, size: int) -> bool:
        """Whether `size` bytes of repeated `block` come back the same; the buffers stay here."""
        source, memory = ctypes.create_string_buffer(size), self.allocate(size)[0]
        buffer, address = self._keep(source), ctypes.addressof(source)
        pieces = [(at, min(len(block), size - at)) for at in range(0, size, len(block))]
        for at, length in pieces:
            ctypes.memmove(address + at, block, length)
        steps = [self.call("memcpy_htod", stream, memory, buffer, (size,))]
        steps.append(self.call("block_host_until_done", stream))
        ctypes.memset(source, 0, size)
        steps.append(self.call("memcpy_dtoh", stream, buffer, memory, (size,)))
        steps.append(self.call("block_host_until_done", stream))
        same = all(
            ctypes.string_at(address + at, length) == block[:length] for at, length in pieces
        )
        self.deallocate(memory)
        del self._things[buffer]
        return same and not any(step.code for step in steps)

    # -- streams, events, timers ------------------------------------------------------------------

    def create(self, kind: str) -> Outcome:
        """Create a "stream", "event" or "timer"; the value is its number."""
        handle = ctypes.c_void_p()
        outcome = self._status_call(
            getattr(self._executor, f"create_{kind}"), byref(self._device), byref(handle)
        )
        return outcome._replace(value=self._keep(handle))

    def destroy(self, kind: str, number: int) -> None:
        """Destroy what `create` made."""
        getattr(self._executor, f"destroy_{kind}")(byref(self._device), self._things.pop(number))

    def call(self, slot: str, *arguments: int | tuple[int]) -> Outcome:
        """Any slot with a status: numbers of things, and plain integers in 1-tuples."""
        passed = [self._passed(argument) for argument in arguments]
        return self._status_call(getattr(self._executor, slot), byref(self._device), *passed)

    def _passed(self, argument: int | tuple[int]) -> Any:
        if isinstance(argument, tuple):
            return argument[0]
        thing = self._things[argument]
        return thing if isinstance(thing, ctypes.c_void_p) else byref(thing)

    def event_status(self, event: int) -> int:
        """0 unknown, 1 error, 2 pending, 3 complete."""
        status: int = self._executor.get_event_status(byref(self._device), self._things[event])
        return status

    def nanoseconds(self, timer: int) -> int:
        """What a timer measured."""
        measured: int = self._timer_fns.nanoseconds(self._things[timer])
        return measured

    # -- callbacks --------------------------------------------------------------------------------

    def note(self, stream: int, text: str) -> int:
        """Enqueue a callback that writes `text` down; returns what host_callback said."""
        return self._enqueue(stream, lambda _status: self._log.append(text))

    def fail(self, stream: int, code: int, message: str) -> int:
        """Enqueue a callback that fails."""
        return self._enqueue(
            stream, lambda status: self._runtime.set(status, code, message.encode())
        )

    def hold(self, stream: int) -> int:
        """Enqueue a callback that waits for `release` of the number returned."""
        gate = threading.Event()
        number = self._keep(gate)
        self._gates[number] = gate
        self._enqueue(stream, lambda _status: gate.wait())
        return number

    def release(self, gate: int) -> None:
        """Let a held stream go on."""
        self._gates[gate].set()

    def destroy_inside(self, stream: int) -> int:
        """Enqueue a callback that destroys its own stream and then fails."""

        def work(status: int) -> None:
            self.destroy("stream", stream)
            self._runtime.set(status, 13, b"after the end")

        return self._enqueue(stream, work)

    def log(self) -> list[str]:
        """What callbacks wrote down so far, in order."""
        return list(self._log)

    def _enqueue(self, stream: int, work: Any) -> int:
        callback = tables.Callback(lambda _argument, status: work(status) and None)
        self._callbacks.append(callback)
        answer: int = self._executor.host_callback(
            byref(self._device), self._things[stream], callback, None
        )
        return answer

    # -- calls ------------------------------------------------------------------------------------

    def _keep(self, thing: Any) -> int:
        number = next(self._numbers)
        self._things[number] = thing
        return number

    def _status_call(self, slot: Any, *arguments: Any) -> Outcome:
        with self._runtime.status() as status:
            return self._runtime.outcome(status, value=slot(*arguments, status))


def _null_slots(struct: Any) -> list[str]:
    kinds = struct._fields_
    return [name for name, kind in kinds if _is_slot(kind) and not getattr(struct, name)]


def _is_slot(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _ANY_SLOT)
