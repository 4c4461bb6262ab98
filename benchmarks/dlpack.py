"""Time the exchange of tensors, beside what the libraries do among themselves, in one run.

Usage: python benchmarks/dlpack.py [--json FILE] [--repeat N]

A 32 x 32 float32 tensor on the host goes to numpy, torch, jax and tvm-ffi (those that can be
imported): one of ours, an array of the bundled host device in unified memory ("device's"), and
numpy's; theirs comes to us. Nanoseconds per call with the destruction of
what it made, best and median of interleaved rounds. Nothing here fails: targets are printed
beside the figures.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from modular_tf import PluginService
from modular_tf.dlpack import Tensor, from_dlpack, to_dlpack

Call = Callable[[], object]
SIDE = 32
CALLS_OF_A_ROUND = {"jax": 300}


@dataclass
class Case:
    """One call, and what it is compared with."""

    name: str
    library: str
    call: Call
    peer: str = ""
    target: str = ""
    rounds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Time one round."""
        count = CALLS_OF_A_ROUND.get(self.library, 4000)
        call = self.call
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        self.rounds.append((time.perf_counter_ns() - start) / count)


def aligned_array() -> Any:
    """Return an array that every consumer takes without a copy."""
    whole = np.zeros(SIDE * SIDE + 64, dtype=np.float32)
    skip = -whole.ctypes.data % 256 // 4
    return whole[skip : skip + SIDE * SIDE].reshape(SIDE, SIDE)


def of_library(library: str) -> Any | None:
    """Import what has `from_dlpack`; None where the library is not installed."""
    try:
        return importlib.import_module({"jax": "jax.numpy"}.get(library, library))
    except ImportError:
        return None


def cases(array: Any, tensor: Tensor, on_device: Tensor) -> Iterator[Case]:
    """Yield every case that can be run here."""
    targets = {
        "numpy": "<= 1.2 x numpy's",
        "tvm_ffi": "<= 150 ns, or less than numpy's",
        "torch": "<= 1.05 x numpy's",
    }
    for library, target in {**targets, "jax": ""}.items():
        module = of_library(library)
        if module is None:
            continue
        take = module.from_dlpack
        peer = f"{library}.from_dlpack(numpy's)"
        yield Case(peer, library, lambda take=take: take(array))
        for whose, source in {"ours": tensor, "device's": on_device}.items():
            name = f"{library}.from_dlpack({whose})"
            call = lambda take=take, source=source: take(source)  # noqa: E731  (no def: same cost)
            yield Case(name, library, call, peer, target)
        theirs = take(array)
        yield Case(f"from_dlpack({library}'s)", library, lambda theirs=theirs: from_dlpack(theirs))
    torch = of_library("torch")
    if torch is not None:
        yield Case(
            "to_dlpack(ours, torch.Tensor)", "torch", lambda: to_dlpack(tensor, torch.Tensor)
        )
    yield Case("ours.__dlpack__(max_version)", "", lambda: tensor.__dlpack__(max_version=(1, 0)))
    yield Case("ours.__dlpack_device__()", "", tensor.__dlpack_device__)
    yield Case("memoryview(ours)", "", lambda: memoryview(tensor))


def measure(all_cases: list[Case], rounds: int) -> None:
    """Run the cases in turn, so that what disturbs one disturbs all."""
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for case in all_cases:
            case.run()


def show(all_cases: list[Case]) -> None:
    """Print a line for each."""
    best = {case.name: min(case.rounds) for case in all_cases}
    print(f"{'ns per call':34}{'best':>9}{'median':>9}  {'ratio':>5}  target")
    for case in all_cases:
        ratio = f"{best[case.name] / best[case.peer]:5.2f}" if case.peer else " " * 5
        median = statistics.median(case.rounds)
        print(f"{case.name:34}{best[case.name]:9.0f}{median:9.0f}  {ratio}  {case.target}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=15, help="interleaved rounds")
    options = parser.parse_args()
    array = aligned_array()
    tensor = Tensor(array.ctypes.data, array.shape, None, (2, 32, 1), (1, 0), array)
    with PluginService() as service:
        service.load("host_device")
        on_device = service.device("CPU:0").put(array, memory="unified")
        all_cases = list(cases(array, tensor, on_device))
        measure(all_cases, options.repeat)
    show(all_cases)
    if options.json:
        figures = {case.name: min(case.rounds) for case in all_cases}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
