"""Closes of devices and of what is theirs, against every call that uses it, each pair in turn.

In each round two threads repeat one call, on objects of two platforms of one plugin, while a third
closes something at a random moment. A call has to succeed or to end with an error of the package's.
The plugin notes what is used after it was given back, and what is left in the end.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from modular_tf.device.platform import load_device_platform
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import check
from tests.device.conftest import device_of
from tests.device.lifetimes import LifetimePlugin, await_ends, build_lifetime_plugin
from tests.stress.filesystem_closes import Meeting
from tests.stress.watched_child import still_alive

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 4096
LONGEST_ROUND_S = 60.0


class World:
    """Two platforms that share a plugin's devices, and objects of three executors on these."""

    def __init__(self, plugin: LifetimePlugin, random: Random) -> None:
        """Load the platforms; the executor that works is drawn."""
        self.library = plugin.library
        self.platform, self.other = self.load(), self.load()
        self.device = device_of(self.platform)
        others = device_of(self.platform, 1), device_of(self.other)
        self.user = random.choice([self.device, *others])
        self.theirs, self.ours = self.device.allocate(SIZE), self.user.allocate(SIZE)
        self.their_stream, self.stream = self.device.create_stream(), self.user.create_stream()
        self.event, self.timer = self.their_stream.record_event(), self.device.create_timer()
        self.host, self.unified = self.device.allocate_host(64), self.device.allocate_unified(64)
        native = self.device.executor.native
        arena = lib.mtf_executor_arena_new(native, lib.MTF_DEVICE_MEMORY, 1 << 26, 1, 1)
        self.arena = ffi.gc(arena, lib.mtf_arena_release)

    def load(self) -> Any:
        """Load the plugin, once more."""
        return load_device_platform(self.library, plugin_name="lifetime")


def views(world: World) -> None:
    """Write to memory that the host sees."""
    for memory in (world.user.allocate_host(64), world.user.allocate_unified(64), world.host):
        memory.view[:] = bytes(64)


def cut(world: World) -> None:
    """Use an arena over the device's memory."""
    address = ffi.new("uintptr_t *")
    check(lib.mtf_arena_allocate(world.arena, SIZE, address), operation="allocate")
    lib.mtf_string_free(lib.mtf_arena_picture(world.arena))
    check(lib.mtf_arena_free(world.arena, address[0]), operation="free")


def timed(world: World) -> None:
    """Measure the stream."""
    world.timer.start(world.stream)
    world.timer.stop(world.stream)
    world.user.create_timer().close()


def end_arena(arena: Any) -> None:
    """Close an arena."""
    check(lib.mtf_arena_close(arena), operation="close")


CALLS: dict[str, Callable[[World], object]] = {
    "memcpy_htod": lambda w: w.stream.memcpy_htod(w.theirs, bytes(SIZE)),
    "memcpy_dtoh": lambda w: w.stream.memcpy_dtoh(bytearray(SIZE), w.theirs),
    "memcpy_dtod": lambda w: w.stream.memcpy_dtod(w.ours, w.theirs),
    "memcpy_dtod back": lambda w: w.stream.memcpy_dtod(w.theirs, w.ours),
    "unified": lambda w: w.stream.memcpy_dtod(w.theirs, w.unified, 64),
    "mem_zero": lambda w: w.stream.mem_zero(w.theirs),
    "memset32": lambda w: w.stream.memset32(w.theirs, 1),
    "part": lambda w: w.stream.memset(w.theirs.part(64, 64), 1),
    "wait_for": lambda w: w.stream.wait_for(w.their_stream),
    "wait_event": lambda w: w.stream.wait_event(w.event),
    "record": lambda w: w.event.record(w.stream),
    "record_event": lambda w: w.stream.record_event().wait(),
    "add_callback": lambda w: w.stream.add_callback(lambda: w.ours.size),
    "block_until_done": lambda w: w.stream.block_until_done(),
    "timer": timed,
    "sync_memcpy_htod": lambda w: w.user.memcpy_htod(w.theirs, bytes(SIZE)),
    "sync_memcpy_dtoh": lambda w: w.user.memcpy_dtoh(bytearray(SIZE), w.theirs),
    "sync_memcpy_dtod": lambda w: w.user.memcpy_dtod(w.ours, w.theirs),
    "create_stream": lambda w: w.device.create_stream().memset(w.device.allocate(SIZE), 1),
    "create_event": lambda w: w.device.create_event(),
    "synchronize": lambda w: w.user.synchronize(),
    "allocator_stats": lambda w: (w.user.memory_usage(), w.user.allocator_stats()),
    "views": views,
    "arena": cut,
    "executor": lambda w: device_of(w.platform, 1).allocate(SIZE),
    "details": lambda w: w.platform.device_details(1),
    "load": lambda w: w.load().close(),
}

CLOSES: dict[str, Callable[[World], Callable[[], None]]] = {
    "platform": lambda w: w.platform.close,
    "other platform": lambda w: w.other.close,
    "device": lambda w: w.device.executor.close,
    "user": lambda w: w.user.executor.close,
    "stream": lambda w: w.stream.close,
    "their stream": lambda w: w.their_stream.close,
    "memory": lambda w: w.theirs.close,
    "unified memory": lambda w: w.unified.close,
    "host memory": lambda w: w.host.close,
    "event": lambda w: w.event.close,
    "timer": lambda w: w.timer.close,
    "arena": lambda w: partial(end_arena, w.arena),
}

PAIRS = [(call, close) for call in CALLS for close in CLOSES]


def run_round(plugin: LifetimePlugin, call: str, close: str, random: Random) -> list[str]:
    """Let a call and a close meet at moments that are drawn; return the problems."""
    plugin.reset()
    if random.random() < 0.5:  # the host cuts the plugin's memory
        plugin.use_bfc_allocator()
    world = World(plugin, random)
    meeting = Meeting(partial(CALLS[call], world), CLOSES[close](world))
    plugin.hold("work")
    letting_go = threading.Timer(random.random() * 0.006, plugin.let_go, ["work"])
    letting_go.start()
    meeting.run(random.random() * 0.002)
    letting_go.join()
    for platform in (world.platform, world.other):
        platform.close()
    problems = meeting.faults
    del world, meeting, platform
    gc.collect()
    # The last callback has what it closes over until its thread goes on, or ends.
    while any(thread.name.startswith("callbacks of ") for thread in threading.enumerate()):
        time.sleep(0.001)
    await_ends()
    return [*problems, *plugin.faults, *[f"left: {plugin.left}"] * bool(plugin.left)]


def main() -> int:
    """Run the campaign."""
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    sys.setswitchinterval(1e-5)
    random = Random(seed)
    plugin, found, pairs = LifetimePlugin(build_lifetime_plugin()), 0, PAIRS[:]
    for number in range(rounds):
        if number % len(pairs) == 0:
            random.shuffle(pairs)
        call, close = pairs[number % len(pairs)]
        still_alive(LONGEST_ROUND_S)
        for problem in run_round(plugin, call, close, random):
            print(f"round {number}, {call} while {close} is closed: {problem}", flush=True)
            found += 1
    print(f"{rounds} rounds of {len(pairs)} pairs, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
