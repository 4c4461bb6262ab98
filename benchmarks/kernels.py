"""Time calls of kernels, beside TensorFlow's on the same kernels and numpy, in one run.

Usage: python benchmarks/kernels.py [--json FILE] [--repeat N] [--tensorflow PYTHON] [--itex FOLDER]

`noop_kernels.c` is compiled for the occasion: what its kernels take is the host's. "array" is an
array of the host device, "numpy" goes in as it is where it is aligned, and "numpy in and out" comes
back as a copy. PYTHON is an interpreter with TensorFlow, which runs the same library eagerly;
FOLDER is where the wheel intel_extension_for_tensorflow_lib was unpacked or installed, whose MatMul
is compared with numpy's; both use as many threads as they like.

Figures are the median and the best of interleaved rounds, in microseconds per call; ratios are of
the best, since calls are so short that any other process multiplies a median. Nothing here fails:
targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from interleaved_cases import Case, interpreter_cases, measure, show

from modular_tf import PluginService
from modular_tf.headers import include_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ALIGNMENT = 64
CALLS = 300  # so few that a round can fit between two switches to other processes


def build_kernels(folder: Path) -> Path:
    """Compile the kernels that do nothing.

    Raises:
        SystemExit: There is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("no C compiler: there is nothing to time")
    library = folder / "libnoop_kernels.so"
    source = HERE / "noop_kernels.c"
    command = [
        compiler,
        "-O2",
        "-shared",
        "-fPIC",
        f"-I{include_directory()}",
        source,
        "-o",
        library,
    ]
    subprocess.run(command, check=True)
    return library


def aligned(values: Any) -> Any:
    """Return a copy of an array that kernels read where it is."""
    whole = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    skip = -whole.ctypes.data % ALIGNMENT
    made = whole[skip : skip + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


def overhead(device: Any) -> Iterator[Case]:
    """Yield calls of kernels that do nothing."""
    nothing, tiny = device.op("BenchmarkNothing"), device.op("BenchmarkTiny")
    forwarded = device.op("BenchmarkForwarded")
    odd = np.ones(17, np.float32)[1:]
    there, here = device.put(odd), aligned(odd)
    few, many = "<= 2 us", "<= 10 us"
    yield Case("nothing in, nothing out", nothing, CALLS, target=few)
    yield Case("array in, tiny out", lambda: tiny(there), CALLS, target=few)
    yield Case("array in, as much out", lambda: forwarded(there), CALLS, target=few)
    yield Case("aligned numpy in, tiny out", lambda: tiny(here), CALLS)
    yield Case("numpy in, tiny out", lambda: tiny(odd), CALLS)
    yield Case("numpy in and out", lambda: tiny(odd).to_numpy(), CALLS, target=many)


def beside_tensorflow(all_cases: list[Case]) -> None:
    """Compare cases with those of TensorFlow that do the same."""
    names = {case.name for case in all_cases}
    for case in all_cases:
        if f"TensorFlow: {case.name}" in names:
            case.peer = f"TensorFlow: {case.name}"
            case.target = f"{case.target}, a third of it".lstrip(", ")


def products(device: Any) -> Iterator[Case]:
    """Yield products of square matrices, of a kernel and of numpy."""
    matmul = device.op("MatMul")
    generator = np.random.default_rng(0)
    for side, count in ((512, 10), (2048, 1)):
        a, b = (aligned(generator.random((side, side), np.float32)) for _ in range(2))
        there = device.put(a), device.put(b)
        out = np.empty_like(a)
        np.testing.assert_allclose(matmul(a, b).to_numpy(), a @ b, rtol=1e-3)
        peer = f"numpy: {side} x {side}"
        yield Case(peer, lambda a=a, b=b, out=out: np.matmul(a, b, out=out), count)
        yield Case(f"MatMul {side}, arrays", lambda there=there: matmul(*there), count, peer)
        yield Case(f"MatMul {side}, numpy in", lambda a=a, b=b: matmul(a, b), count, peer)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=15, help="interleaved rounds")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="an interpreter that has it")
    parser.add_argument("--itex", type=Path, metavar="FOLDER", help="where Intel's wheel is")
    options = parser.parse_args()
    with ExitStack() as stack:
        library = build_kernels(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        service = stack.enter_context(PluginService())
        plugins = [] if options.itex is None else list(options.itex.rglob("libitex_cpu.so"))[:1]
        service.load("host_device", library, *plugins)
        device = service.device("CPU:0")
        all_cases = [*overhead(device), *(products(device) if plugins else ())]
        if options.tensorflow:
            all_cases += stack.enter_context(
                interpreter_cases([options.tensorflow, HERE / "tensorflow_kernels.py", library])
            )
            beside_tensorflow(all_cases)
        else:
            print("no --tensorflow PYTHON: its calls are missing", file=sys.stderr)
        if not plugins:
            print("no --itex FOLDER: products of matrices are missing", file=sys.stderr)
        measure(all_cases, options.repeat)
        figures = show(all_cases, "best")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
