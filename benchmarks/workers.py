"""Time calls of plugins in worker processes, beside the same calls in this process, in one run.

Usage: python benchmarks/workers.py [--json FILE] [--repeat N]

`ping_pong.c` is compiled for the occasion: two processes that take turns by what the kernel offers,
which no call of a worker can be faster than. A start is from the request for an instance to the
answer of its first call, with a warm zygote; its processor time is that of all processes. Memory
is what only the processes of one worker have, and nobody shares: of the worker, with the plugin's
own, and of those that watch over it.

Figures are the median and the best of interleaved rounds; what a worker costs is the difference of
the best, since calls are so short that any other process multiplies a median. Nothing here fails:
targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interleaved_cases import Case, interpreter_cases, measure, show

from modular_tf import PluginService
from modular_tf.processes.descendants import living_descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
SMALL, LARGE = 4096, 64 << 20
CALLS = 100  # so few that a round can fit between two switches to other processes
STARTS = 12
MOST_PROCESSES = 1000
IN_PROCESS, IN_WORKER = "in this process", "in a worker"


def build_ping_pong(folder: Path) -> Path | None:
    """Compile it; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = folder / "ping_pong"
    subprocess.run([compiler, "-O2", HERE / "ping_pong.c", "-o", program], check=True)
    return program


def calls_of(service: PluginService, place: str, base: str) -> Iterator[Case]:
    """Yield the calls of one store."""
    filesystem = service.filesystem_for(base)
    filesystem.recursively_create_dir(base)
    for name, size in (("small", SMALL), ("large", LARGE)):
        with filesystem.new_writable_file(f"{base}/{name}") as file:
            file.append(bytes(size))
    kind = "ram" if base.startswith("ram:") else "local file"
    small = filesystem.new_random_access_file(f"{base}/small")
    large = filesystem.new_random_access_file(f"{base}/large")
    buffer, whole = memoryview(bytearray(SMALL)), memoryview(bytearray(LARGE))
    yield Case(f"path_exists, {kind}, {place}", lambda: filesystem.path_exists(base), CALLS)
    yield Case(f"read of 4 KiB, {kind}, {place}", lambda: small.readinto(0, buffer), CALLS)
    yield Case(f"read of 64 MiB, {kind}, {place}", lambda: large.readinto(0, whole), 1)


def processor_times() -> dict[int, float]:
    """Return the milliseconds that each descendant has run."""
    found = {}
    for pid in living_descendants(os.getpid(), MOST_PROCESSES):
        threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
        found[pid] = sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6
    return found


def private_mib(pid: int) -> float:
    """Return the memory that only this process has."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def start_one(service: PluginService, number: int) -> dict[str, float]:
    """Start a worker, and return what it took, in ms and MiB."""
    before, own = processor_times(), time.process_time()
    start = time.perf_counter()
    instance = service.instance("ram", name=f"of-benchmark-{number}", environment={})
    instance.path_exists("ram://x")
    took = (time.perf_counter() - start) * 1e3
    after = processor_times()
    ran = sum(now - before.get(pid, 0.0) for pid, now in after.items())
    memory = [private_mib(pid) for pid in after if pid not in before]
    return {
        "start of a worker, ms": took,
        "processor time of it, ms": ran + (time.process_time() - own) * 1e3,
        "memory of the worker, MiB": max(memory),
        "with those that watch over it, MiB": sum(memory),
    }


def starts() -> dict[str, float]:
    """Return the best of several starts; what the zygote needs to begin is not in them."""
    with PluginService() as service:
        service.load()
        start_one(service, 0)
        found = [start_one(service, number) for number in range(1, STARTS + 1)]
    return {name: min(one[name] for one in found) for name in found[0]}


def tell_costs(figures: dict[str, dict[str, float]], tell: Callable[[str], None]) -> None:
    """Tell what a worker costs, from the best rounds."""
    for kind in ("ram", "local file"):
        for call in ("path_exists", "read of 4 KiB"):
            best = [
                figures[f"{call}, {kind}, {place}"]["best"] for place in (IN_PROCESS, IN_WORKER)
            ]
            tell(f"{call}, {kind}: {best[1] - best[0]:.2f} us more (target: at most 40 us)")
        whole = [
            figures[f"read of 64 MiB, {kind}, {place}"]["best"] for place in (IN_PROCESS, IN_WORKER)
        ]
        tell(f"read of 64 MiB, {kind}: {whole[0] / whole[1]:.2f} of the throughput (target: 0.5)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=200, help="interleaved rounds")
    options = parser.parse_args()
    found: dict[str, Any] = {"starts": starts()}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cases: list[Case] = []
        for place, isolation in ((IN_PROCESS, "none"), (IN_WORKER, "process")):
            service = stack.enter_context(PluginService(isolation=isolation))
            service.load()
            for base in ("ram://of-benchmark", f"{folder}/{isolation}"):
                cases += calls_of(service, place, base)
        if (program := build_ping_pong(Path(folder))) is not None:
            cases += stack.enter_context(interpreter_cases([program]))
        large = [case for case in cases if case.calls_of_a_round == 1]
        measure([case for case in cases if case not in large], options.repeat)
        measure(large, max(10, options.repeat // 10))  # apart: each empties the processor's caches
        found["calls"] = show(cases)
    tell_costs(found["calls"], print)
    targets = {"start of a worker, ms": 30, "with those that watch over it, MiB": 10}
    for name, value in found["starts"].items():
        target = f"  (target: at most {targets[name]})" if name in targets else ""
        print(f"{name}: {value:.1f}{target}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
