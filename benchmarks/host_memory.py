"""Time asynchronous copies of Python's buffers, of the plugin's host memory, and staged through it.

Usage: python benchmarks/host_memory.py [--plugin NAME_OR_PATH] [--json FILE] [--repeat N]

A copy is enqueued on a stream of the plugin's first device, and waited for. "numpy's" is memory as
numpy allocates it; "pinned" is that of `Device.allocate_host`; "staged" copies numpy's memory to or
from pinned memory that is kept between calls, and "staged, new" to or from some that is allocated
for each call. Ratios tell what staging would gain or cost.

For the OpenCL plugin, build it with `scripts/build_plugins opencl_device`, and give its library;
MTF_OPENCL_PLATFORM says which driver it uses.

Figures are the median and the best of interleaved rounds, in microseconds per call; ratios are of
medians. Nothing here fails.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from interleaved_cases import Case, measure, show

from modular_tf import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = {"4 KiB": 4 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
CALLS_OF_A_ROUND = {"4 KiB": 300, "1 MiB": 50, "64 MiB": 3}


def cases(device: Any) -> Iterator[Case]:
    """Yield each size and direction by each way."""
    stream = device.create_stream()
    for size, n_bytes in SIZES.items():
        for direction, ways in (("to", to_device), ("from", from_device)):
            peer = f"{size} {direction} the device, numpy's"
            for way, call in ways(device, stream, n_bytes):
                name = f"{size} {direction} the device, {way}"
                yield Case(name, call, CALLS_OF_A_ROUND[size], "" if name == peer else peer)


def to_device(device: Any, stream: Any, n_bytes: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the ways from the host to the device."""
    memory, pinned = device.allocate(n_bytes), device.allocate_host(n_bytes)
    pageable, staging = np.ones(n_bytes, "u1"), np.asarray(pinned.view)

    def copy(source: Any) -> None:
        stream.memcpy_htod(memory, source)
        stream.block_until_done()

    def stage() -> None:
        staging[:] = pageable
        copy(pinned)

    def stage_anew() -> None:
        with device.allocate_host(n_bytes) as new:
            np.asarray(new.view)[:] = pageable
            copy(new)

    yield "numpy's", lambda: copy(pageable)
    yield "pinned", lambda: copy(pinned)
    yield "staged", stage
    yield "staged, new", stage_anew


def from_device(device: Any, stream: Any, n_bytes: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the ways from the device to the host."""
    memory, pinned = device.allocate(n_bytes), device.allocate_host(n_bytes)
    pageable, staging = np.ones(n_bytes, "u1"), np.asarray(pinned.view)

    def copy(target: Any) -> None:
        stream.memcpy_dtoh(target, memory)
        stream.block_until_done()

    def stage() -> None:
        copy(pinned)
        pageable[:] = staging

    def stage_anew() -> None:
        with device.allocate_host(n_bytes) as new:
            copy(new)
            pageable[:] = np.asarray(new.view)

    yield "numpy's", lambda: copy(pageable)
    yield "pinned", lambda: copy(pinned)
    yield "staged", stage
    yield "staged, new", stage_anew


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", default="host_device", help="a name, or a library")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=9, help="interleaved rounds")
    options = parser.parse_args()
    with PluginService() as service:
        service.load(options.plugin)
        (device, *_) = service.devices()
        print(f"{device.name}: {device.hardware_name}")
        all_cases = list(cases(device))
        measure(all_cases, options.repeat)
        figures = show(all_cases)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
