"""Closes of arrays and of what they lie in, against every way to export and to copy them.

In each round some threads use an array, each in one way, while a stream is still to write to it,
and another thread closes the array, its memory, its device or its service at a random moment. A
use has to end with the bytes that the stream writes, or with an error of the package's. Memory
that was given back is allocated again and overwritten at once, so that a view of it shows that.

What is closed, the kind of memory and one use come from a list of all combinations in random order,
so that a campaign of that many rounds tries every one; further uses are random.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

from modular_tf import PluginService, dlpack
from modular_tf.errors import ModularTFError
from tests.dlpack.exchange import describe

ROUNDS_OF_A_PROCESS = 25
LONGEST_ROUND_S = 60
SIZES = (4096, 1 << 20, 8 << 20)
MEMORIES = ("device", "host", "unified")
CLOSES = ("array", "memory", "device", "service")
OLD, WRITTEN, COPIED, GARBAGE = 1, 2, 3, 0xEE
REFUSALS = (ModularTFError, BufferError)
PROGRESS = os.memfd_create("number of the round")

Use = Callable[[Any], Any]


# -- uses of an array -----------------------------------------------------------------------------


def borrowed(array: Any) -> Any:
    """Read the memory as a C function does that has a description only."""
    described = describe(array)
    return ctypes.string_at(described.data, array.nbytes) if described.device_type == 1 else b""


def copied_by_a_stream(array: Any) -> Any:
    """Copy on a stream of the caller's."""
    target = np.empty(array.nbytes, np.uint8)
    memory = array.memory
    with array.device.create_stream() as stream:
        stream.wait_for(array.device.context.compute)
        if hasattr(memory, "hold"):
            stream.memcpy_dtoh(target, memory)
        stream.block_until_done()
    return target if hasattr(memory, "hold") else np.array(memory.view)


def overwritten(array: Any) -> Any:
    """Overwrite the elements."""
    array.copy_from(np.full(array.nbytes, COPIED, np.uint8))
    return b""


def closed(array: Any) -> Any:
    """Close the array."""
    with array:
        return b""


ANYWHERE: dict[str, Use] = {
    "copy=True": lambda array: dlpack.from_dlpack(array, copy=True),
    "numpy copy": lambda array: np.from_dlpack(array, device="cpu", copy=True),
    "numpy on host": lambda array: np.from_dlpack(array, device="cpu"),
    "to_numpy": lambda array: array.to_numpy(),
    "to_numpy(out)": lambda array: array.to_numpy(np.empty(array.nbytes, np.uint8)),
    "to_bytes": lambda array: array.to_bytes(),
    "to_host": lambda array: array.to_host(),
    "to_memoryview": lambda array: array.to_memoryview(),
    "copy_to": lambda array: array.copy_to(array.device).to_bytes(),
    "put": lambda array: array.device.put(array, memory="host").to_bytes(),
    "copy_from": overwritten,
    "stream": copied_by_a_stream,
    "close": closed,
}


def imported(name: str) -> Any:
    """Return a library, None where it is not installed."""
    with suppress(ImportError):
        return importlib.import_module(name)


def uses_on_host() -> dict[str, Use]:
    """Return also the ways to use an array that lies where the host sees it."""
    uses: dict[str, Use] = {
        **ANYWHERE,
        "np.from_dlpack": np.from_dlpack,
        "memoryview": memoryview,
        "np.asarray": np.asarray,
        "capsule": lambda array: dlpack.consume(array.__dlpack__()),
        "table": dlpack.from_dlpack,
        "description": borrowed,
        "re-import": lambda array: dlpack.from_dlpack(dlpack.from_dlpack(array)),
    }
    if (torch := imported("torch")) is not None:
        uses["torch"] = torch.from_dlpack
        uses["to torch"] = lambda array: dlpack.to_dlpack(array, torch.Tensor)
    if (tvm_ffi := imported("tvm_ffi")) is not None:
        uses["tvm_ffi"] = tvm_ffi.from_dlpack
        uses["tvm_ffi call"] = tvm_ffi.get_global_func("testing.echo")
    return uses


def values_in(found: Any) -> set[int]:
    """Return which bytes there are in what a use returned."""
    if isinstance(found, dlpack.Tensor) and found.dlpack_device != dlpack.HOST:
        found = found.to_bytes() if hasattr(found, "to_bytes") else b""
    if isinstance(found, bytes):
        found = memoryview(found)
    elif not isinstance(found, (memoryview, np.ndarray)):
        found = np.from_dlpack(found)
    values = np.asarray(found)  # of objects where numpy did not say that it was refused
    return set() if values.dtype == object else set(np.unique(values).tolist())


# -- one round ------------------------------------------------------------------------------------


class Combination(NamedTuple):
    """What a round tries."""

    closes: str
    memory: str
    use: str


def combinations(seed: int, uses: dict[str, Use]) -> list[Combination]:
    """Return all of them in the order of a campaign."""
    found = [
        Combination(closes, memory, use)
        for closes, memory in product(CLOSES, MEMORIES)
        for use in uses_of(memory, uses)
    ]
    Random(seed).shuffle(found)
    return found


def uses_of(memory: str, uses: dict[str, Use]) -> dict[str, Use]:
    """Return the uses of an array in a kind of memory."""
    return ANYWHERE if memory == "device" else uses


class Round:
    """One array, its users, and whoever closes something."""

    def __init__(
        self, service: Any, tried: Combination, uses: dict[str, Use], random: Random
    ) -> None:
        """Draw what the combination leaves open, and leave work in flight."""
        self.problems: list[str] = []
        self._service = service
        self._random = random
        self._device = service.device("CPU:0")
        known = uses_of(tried.memory, uses)
        names = [tried.use, *random.choices(list(known), k=random.choice([0, 0, 1, 2]))]
        self._uses = [(name, known[name]) for name in names]
        self.closes = tried.closes
        self.what = f"{tried.closes} closed while {' and '.join(names)} of {tried.memory} memory"
        self._allowed = {WRITTEN, COPIED} if "copy_from" in names else {WRITTEN}
        content = np.full(random.choice(SIZES), OLD, np.uint8)
        self._array: Any = self._device.put(content, memory=tried.memory)
        self._leave_work()

    def _leave_work(self) -> None:
        """Enqueue what a use has to wait for: after a while the memory is written."""
        pause = self._random.choice([0, 0.0005, 0.003])
        stream, memory = self._device.context.compute, self._array.memory
        if pause:
            stream.add_callback(lambda: time.sleep(pause))
        if hasattr(memory, "hold"):
            stream.memset(memory, WRITTEN)
        else:
            stream.add_callback(lambda view=memory.view: _fill(view))

    def run(self) -> None:
        """Have all begin at once, and wait for their ends."""
        begin = threading.Barrier(len(self._uses) + 1)
        array, draw = self._array, self._random.random
        jobs = [(self._use, (array, name, use, begin, draw())) for name, use in self._uses]
        jobs.append((self._close, (self._ends()[self.closes], begin, draw())))
        threads = [threading.Thread(target=job, args=arguments) for job, arguments in jobs]
        del array, jobs
        self._array = None
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONGEST_ROUND_S)
            if thread.is_alive():
                self._give_up()

    def _ends(self) -> dict[str, Callable[[], None]]:
        return {
            "array": self._array.close,
            "memory": self._array.memory.close,
            "device": self._device.executor.close,
            "service": self._service.close,
        }

    def _use(
        self, array: Any, name: str, use: Use, begin: threading.Barrier, moment: float
    ) -> None:
        begin.wait()
        time.sleep(moment * 0.002)
        try:
            found = use(array)
            time.sleep(moment * 0.002)
            values = values_in(found)
            if not values <= self._allowed:
                self.problems.append(f"{name} found bytes {sorted(values)}")
        except REFUSALS:
            pass
        except BaseException as error:  # noqa: BLE001  (to be told)
            self.problems.append(f"{name} raised {error!r}")

    def _close(self, end: Callable[[], None], begin: threading.Barrier, moment: float) -> None:
        begin.wait()
        time.sleep(moment * 0.004)
        with suppress(*REFUSALS):
            end()
        with suppress(*REFUSALS):
            for memory in MEMORIES:
                self._device.put(np.full(1 << 20, GARBAGE, np.uint8), memory=memory)

    def _give_up(self) -> None:
        print(f"{self.what}: still running after {LONGEST_ROUND_S} s", flush=True)
        faulthandler.dump_traceback(all_threads=True)
        os._exit(1)


def _fill(view: memoryview) -> None:
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(view)), WRITTEN, len(view))


# -- the campaign ---------------------------------------------------------------------------------


def new_service() -> Any:
    """Return a service with the bundled host device."""
    service = PluginService()
    service.load("host_device")
    return service


def host_memories_left(device: Any) -> int:
    """Return how many there are when the streams have let go of what they have passed."""
    for stream in device.context.streams:
        stream.block_until_done()
    gc.collect()
    return int(device.executor.host_memories)


def run_round(stressed: Round, number: int) -> list[str]:
    """Run one round; return its problems."""
    os.pwrite(PROGRESS, b"%-8d%-192s" % (number, stressed.what.encode()), 0)
    stressed.run()
    return [f"round {number}, {stressed.what}: {problem}" for problem in stressed.problems]


def run_rounds(numbers: range, seed: int, uses: dict[str, Use]) -> int:
    """Run some rounds in this process; return how many had a problem."""
    sys.setswitchinterval(1e-5)
    service, failed = new_service(), 0
    order = combinations(seed, uses)
    for number in numbers:
        tried = order[number % len(order)]
        problems = run_round(Round(service, tried, uses, Random(f"{seed} {number}")), number)
        if tried.closes in {"device", "service"}:
            service.close()
            service = new_service()
        elif left := host_memories_left(service.device("CPU:0")):
            problems.append(f"round {number}, {tried}: {left} host memories are left")
        for problem in problems:
            print(problem, flush=True)
        failed += bool(problems)
    service.close()
    return failed


def run_in_child(numbers: range, seed: int, uses: dict[str, Use]) -> int:
    """Run some rounds in a forked child; return how many had a problem, at least."""
    child = os.fork()
    if child == 0:
        faulthandler.enable()
        os._exit(min(run_rounds(numbers, seed, uses), 255))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        print(f"round {os.pread(PROGRESS, 200, 0).decode().strip()}: died of signal {-status}")
        return 1
    return status


def main() -> int:
    """Run the campaign."""
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    uses = uses_on_host()
    failed = 0
    for first in range(0, rounds, ROUNDS_OF_A_PROCESS):
        numbers = range(first, min(first + ROUNDS_OF_A_PROCESS, rounds))
        failed += run_in_child(numbers, seed, uses)
    tried = min(rounds, len(combinations(seed, uses)))
    print(f"{rounds} rounds, {tried} combinations: {failed} had a problem")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
