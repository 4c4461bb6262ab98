"""Time copies to and from the host device, and what enqueues them, beside memcpy and TensorFlow.

Usage: python benchmarks/device_copies.py [--json FILE] [--repeat N] [--tensorflow PYTHON]

Copies of 64 MiB are compared with one memcpy of the same bytes: into memory that was written
before ("reused") where ours goes to existing memory, and into memory that was just allocated, and
is released again, where ours has to allocate. "fresh" is allocated by numpy, in huge pages, and
starts at the same place in a page as the source, which made memcpy a third faster where this was
written; "fresh, aligned" starts at a page, as a device's memory does, in huge pages too; "fresh,
malloc" is what the C library alone makes of it, in small ones.

Calls are enqueued on a stream that a callback holds, so that nothing but the enqueueing is timed;
"idle" is a stream without work. PYTHON is an interpreter with TensorFlow 2.9 to 2.21: it takes the
same plugin, built under the device type MTF_CPU, and its rounds are interleaved with ours.

Figures are the median and the best of interleaved rounds, in microseconds per call; ratios are of
medians. Nothing here fails: targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from interleaved_cases import Call, Case, interpreter_cases, measure, show

from modular_tf import PluginService

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SMALL, BIG = 4096, 64 << 20
HUGE_PAGE = 2 << 20


def big_copies(device: Any) -> Iterator[Case]:
    """Yield the copies of 64 MiB."""
    array = np.arange(BIG // 4, dtype="f4")
    reused = array.copy()
    there = device.put(array)
    source, to = array.ctypes.data, reused.ctypes.data

    def fresh() -> None:
        made = np.empty_like(array)
        ctypes.memmove(made.ctypes.data, source, BIG)

    yield Case("memcpy, reused", lambda: ctypes.memmove(to, source, BIG), 3)
    yield Case("memcpy, fresh", fresh, 3)
    yield Case("memcpy, fresh, aligned", copy_to_heap(source, HUGE_PAGE), 3)
    yield Case("memcpy, fresh, malloc", copy_to_heap(source, 0), 3)
    near = "<= 1.1 x memcpy"
    yield Case(
        "array.copy_from(numpy's)", lambda: there.copy_from(array), 3, "memcpy, reused", near
    )
    yield Case("array.to_numpy(out)", lambda: there.to_numpy(reused), 3, "memcpy, reused", near)
    yield Case("device.put(numpy's)", lambda: device.put(array), 3, "memcpy, fresh, aligned", near)
    yield Case("array.to_numpy()", there.to_numpy, 3, "memcpy, fresh", near)
    yield Case("array.to_host()", there.to_host, 3, "memcpy, fresh, aligned")
    yield Case("array.to_bytes()", there.to_bytes, 1, "memcpy, fresh, malloc")
    yield Case("array.copy_to(same device)", lambda: there.copy_to(device), 3)
    yield Case("put + to_numpy", lambda: device.put(array).to_numpy(), 5)


def copy_to_heap(source: int, alignment: int) -> Call:
    """Return a call that allocates, copies and frees as C programs do.

    Args:
        source: What to copy.
        alignment: For huge pages; 0 for what malloc does.
    """
    c = ctypes.CDLL(None)
    c.malloc.restype = c.aligned_alloc.restype = ctypes.c_void_p
    c.malloc.argtypes = [ctypes.c_size_t]
    c.aligned_alloc.argtypes = [ctypes.c_size_t] * 2
    c.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    c.free.argtypes = [ctypes.c_void_p]

    def call() -> None:
        made = c.aligned_alloc(alignment, BIG) if alignment else c.malloc(BIG)
        if alignment:
            c.madvise(made, BIG, mmap.MADV_HUGEPAGE)
        ctypes.memmove(made, source, BIG)
        c.free(made)

    return call


def round_trips(device: Any) -> Iterator[Case]:
    """Yield what 4 KiB take there and back."""
    stream, memory = device.create_stream(), device.allocate(SMALL)
    data, result, array = bytes(SMALL), bytearray(SMALL), np.zeros(SMALL, "u1")

    def on_a_stream() -> None:
        stream.memcpy_htod(memory, data)
        stream.memcpy_dtoh(result, memory)
        stream.block_until_done()

    def at_once() -> None:
        device.memcpy_htod(memory, data)
        device.memcpy_dtoh(result, memory)

    yield Case("4 KiB, idle stream", on_a_stream, target="< 10 us")
    yield Case("4 KiB, sync_memcpy", at_once)
    yield Case("4 KiB, put + to_numpy", lambda: device.put(array).to_numpy())


def enqueueing(device: Any) -> Iterator[Case]:
    """Yield single calls on streams."""
    stream, other, memory = device.create_stream(), device.create_stream(), device.allocate(SMALL)
    data, result, event = bytes(SMALL), bytearray(SMALL), device.create_event()

    @contextmanager
    def held() -> Iterator[None]:
        gate = threading.Event()
        stream.add_callback(gate.wait)
        event.record(stream)
        yield
        gate.set()
        stream.block_until_done()
        other.block_until_done()

    calls: dict[str, Call] = {
        "stream.memcpy_htod": lambda: stream.memcpy_htod(memory, data),
        "stream.memcpy_dtoh": lambda: stream.memcpy_dtoh(result, memory),
        "stream.memcpy_dtod": lambda: stream.memcpy_dtod(memory, memory),
        "stream.memset": lambda: stream.memset(memory, 1),
        "stream.record_event (new)": stream.record_event,
        "event.record": lambda: event.record(stream),
        "stream.wait_event": lambda: other.wait_event(event),
        "stream.wait_for": lambda: other.wait_for(stream),
        "event.status": lambda: event.status,
    }
    for name, call in calls.items():
        yield Case(name, call, around=held, target="<= 1 us")
    yield Case("device.create_event", device.create_event, target="<= 1 us")
    yield Case("event.record, idle", lambda: event.record(stream), target="<= 1 us")
    yield Case("device.create_stream (a thread)", device.create_stream, 20)
    yield Case("device.synchronize, idle", device.synchronize)


@contextmanager
def tensorflow_cases(python: str) -> Iterator[list[Case]]:
    """Start an interpreter with TensorFlow and the plugin; yield its round trips."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        options = ["-DMTF_HOST_DEVICE_TYPE=MTF_CPU", "-DMTF_HOST_DEVICE_PLATFORM=MTF_HOST"]
        build = [ROOT / "scripts" / "build_plugins", "--into", folder, "host_device", "--"]
        subprocess.run([*build, *options], check=True, stdout=subprocess.DEVNULL)
        command = [python, ROOT / "benchmarks" / "tensorflow_round_trips.py", folder, BIG]
        yield stack.enter_context(interpreter_cases(command))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=15, help="interleaved rounds")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="an interpreter that has it")
    options = parser.parse_args()
    with ExitStack() as stack:
        service = stack.enter_context(PluginService())
        service.load("host_device")
        device = service.device("CPU:0")
        all_cases = [*big_copies(device), *round_trips(device), *enqueueing(device)]
        if options.tensorflow:
            all_cases += stack.enter_context(tensorflow_cases(options.tensorflow))
        else:
            print("no --tensorflow PYTHON: its round trips are missing", file=sys.stderr)
        measure(all_cases, options.repeat)
        figures = show(all_cases)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
