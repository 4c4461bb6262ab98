"""Time allocate and free of an arena, from Python and in the native core, beside malloc.

Usage: python benchmarks/arena.py [--json FILE] [--repeat N]

Native figures come from a small program that is compiled with `c++` against the core's sources
for the occasion (without a compiler they are missing). "fragmented" has 10 000 allocations and as
many holes of random sizes up to 64 KiB, and asks for random sizes. "device memory" is an object of
the bundled host device, made and closed: as its plugin allocates it, and by way of an arena. Each
figure is the best of several interleaved rounds, per pair of allocate and free. Nothing here fails:
targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from modular_tf.device.memory.device_memory import DeviceMemory
from modular_tf.native.ffi import ffi, lib
from modular_tf.service.service import PluginService

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # behind the installed package, which is what is timed
from tests.device.arenas import Arena, HostMemory  # noqa: E402

CORE = ROOT / "modular_tf" / "native" / "core"
LIVE = 10_000
LOOPS = 100_000
TARGETS = {"python": "<= 0.6 us", "native": "<= 0.15 us"}
Pair = Callable[[], None]

NATIVE = """
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include "arena.h"

namespace {

uint64_t state = 1;

uint64_t any_size() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 40) % 65536 + 1;
}

template <class Work>
double nanoseconds(int loops, Work work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < loops; ++i) work();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / loops;
}

void* allocate(void*, uint64_t bytes) { return std::aligned_alloc(256, bytes); }
void release(void*, void* address, uint64_t) { std::free(address); }

mtf_arena* make_arena() {
  const mtf_arena_options options = {"benchmark", uint64_t{1} << 33, 1, 1, allocate, release,
                                     nullptr, nullptr, nullptr};
  mtf_arena* arena = nullptr;
  mtf_arena_new(&options, &arena);
  return arena;
}

void fragment(mtf_arena* arena, int live) {
  std::vector<uintptr_t> made(2 * live);
  for (auto& address : made) mtf_arena_allocate(arena, any_size(), &address);
  for (size_t i = 0; i < made.size(); i += 2) mtf_arena_free(arena, made[i]);
}

void pair(mtf_arena* arena, uint64_t bytes) {
  uintptr_t address = mtf_arena_take(arena, bytes);
  if (address == 0) mtf_arena_allocate(arena, bytes, &address);
  mtf_arena_free(arena, address);
}

}  // namespace

int main(int, char** arguments) {
  const int loops = std::atoi(arguments[1]), live = std::atoi(arguments[2]);
  std::thread([] {}).join();  // from here on locks are real, as in an interpreter
  mtf_arena* empty = make_arena();
  mtf_arena* full = make_arena();
  fragment(full, live);
  pair(empty, 4096);
  const double plain = nanoseconds(loops, [&] { pair(empty, 4096); });
  const double random = nanoseconds(loops, [&] { pair(full, any_size()); });
  void* volatile address = nullptr;
  const double heap = nanoseconds(loops, [&] { std::free(address = std::malloc(4096)); });
  std::printf("%f %f %f", plain, random, heap);
}
"""


def fragmented(arena: Arena) -> Arena:
    """Leave many allocations in an arena, with as many holes between them."""
    dice = random.Random(1)
    made = [arena.allocate(dice.randint(1, 65536)) for _ in range(2 * LIVE)]
    for address in made[::2]:
        arena.free(address)
    return arena


def device_pairs(service: PluginService) -> dict[str, Pair]:
    """Return the cases of a device's memory: the two ways that `Device.allocate` has."""
    service.load("host_device")
    executor = service.device("CPU:0").executor
    kind = lib.MTF_DEVICE_MEMORY
    arena = ffi.gc(
        lib.mtf_executor_arena_new(executor.native, kind, 1 << 30, 1, 1), lib.mtf_arena_release
    )

    def plain() -> None:
        for _ in range(LOOPS):
            native = lib.mtf_memory_new(executor.native, kind, 4096)
            DeviceMemory(executor, ffi.gc(native, lib.mtf_memory_free), 4096).close()

    def cut() -> None:
        for _ in range(LOOPS):
            native = lib.mtf_arena_memory_new(executor.native, arena, kind, 4096)
            DeviceMemory(executor, ffi.gc(native, lib.mtf_memory_free), 4096).close()

    return {"device memory, plain": plain, "device memory, arena": cut}


def pairs() -> dict[str, Pair]:
    """Return the Python cases: each call does `LOOPS` pairs."""
    memory = HostMemory()
    empty = Arena(memory, 1 << 33)
    full = fragmented(Arena(memory, 1 << 33))
    dice = random.Random(2)
    sizes = [dice.randint(1, 65536) for _ in range(LOOPS)]

    def one_size() -> None:
        allocate, free = empty.allocate, empty.free
        for _ in range(LOOPS):
            free(allocate(4096))

    def random_sizes() -> None:
        allocate, free = full.allocate, full.free
        for size in sizes:
            free(allocate(size))

    def peer() -> None:
        for _ in range(LOOPS):
            bytearray(4096)

    return {"python": one_size, "python fragmented": random_sizes, "bytearray(4096)": peer}


def compile_native(folder: Path) -> Path | None:
    """Build the native program; None where there is no compiler or no source."""
    compiler = shutil.which("c++")
    if compiler is None or not CORE.is_dir():
        print("no C++ compiler or no sources: native figures are missing", file=sys.stderr)
        return None
    source = folder / "arena_benchmark.cc"
    # What the guard needs of the host's status, without the library that plugins see.
    source.write_text(NATIVE + '\nextern "C" void mtf_status_clear(void*) {}\n', encoding="utf-8")
    includes = [CORE, CORE.parent / "host_runtime", ROOT / "modular_tf" / "include"]
    guard = ("call_counts", "call_trace", "error", "float_state", "fork_lock")
    sources = [source, *sorted(CORE.glob("arena*.cc")), *(CORE / f"{name}.cc" for name in guard)]
    program = folder / "arena_benchmark"
    subprocess.run(
        [compiler, "-std=c++17", "-O3", "-fPIC", "-pthread", *(f"-I{path}" for path in includes),
         *sources, "-o", program],
        check=True,
    )  # fmt: skip
    return program


def native_round(program: Path) -> dict[str, float]:
    """Return microseconds per pair of one run of the native program."""
    run = subprocess.run(
        [program, str(10 * LOOPS), str(LIVE)], check=True, capture_output=True, text=True
    )
    names = ("native", "native fragmented", "malloc(4096)")
    return {name: float(text) / 1e3 for name, text in zip(names, run.stdout.split(), strict=True)}


def python_round(calls: dict[str, Pair]) -> dict[str, float]:
    """Return microseconds per pair of one round of the Python cases."""
    figures = {}
    for name, call in calls.items():
        gc.collect()
        start = time.perf_counter()
        call()
        figures[name] = (time.perf_counter() - start) / LOOPS * 1e6
    return figures


def measure(repeat: int) -> dict[str, float]:
    """Return the best of all rounds for each case."""
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, PluginService() as service:
        calls = pairs() | device_pairs(service)
        program = compile_native(Path(folder))
        for _ in range(repeat):
            figures = python_round(calls) | (native_round(program) if program else {})
            for name, value in figures.items():
                best[name] = min(value, best.get(name, value))
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=7, help="interleaved rounds")
    options = parser.parse_args()
    best = measure(options.repeat)
    for name, value in best.items():
        target = f"   (target: {TARGETS[name]})" if name in TARGETS else ""
        print(f"{name:22} {value:8.3f} us per allocate and free{target}")
    if options.json:
        options.json.write_text(json.dumps({"microseconds": best, "targets": TARGETS}, indent=2))


if __name__ == "__main__":
    main()
