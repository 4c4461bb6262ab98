"""Kernels that do nothing in TensorFlow, run eagerly: the other side of `kernels.py`.

Usage: PYTHON benchmarks/tensorflow_kernels.py LIBRARY

PYTHON has TensorFlow, and needs no modular_tf; LIBRARY is `noop_kernels.c` as `kernels.py` builds
it. It prints the names of its calls as JSON; then it runs the one whose name it reads, often, and
prints how many microseconds one call took, until its input ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Call = Callable[[], object]
CALLS = 100


def calls(library: str) -> dict[str, Call]:
    """Register the kernels, and return what can be timed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import numpy as np
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        path = Path(tf.__file__).parent / name
        if path.exists():
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(library).TF_InitKernel()
    eager = context.context()
    eager.ensure_initialized()
    execute = pywrap_tfe.TFE_Py_FastPathExecute  # what the functions of tf.raw_ops call
    array = np.ones(17, np.float32)[1:]
    tensor = tf.constant(array)
    assert execute(eager, "BenchmarkTiny", None, tensor).numpy() == 1
    found: dict[str, Call] = {
        "nothing in, nothing out": lambda: execute(eager, "BenchmarkNothing", None),
        "array in, tiny out": lambda: execute(eager, "BenchmarkTiny", None, tensor),
        "array in, as much out": lambda: execute(eager, "BenchmarkForwarded", None, tensor),
        "numpy in, tiny out": lambda: execute(eager, "BenchmarkTiny", None, array),
        "numpy in and out": lambda: execute(eager, "BenchmarkTiny", None, array).numpy(),
    }
    return {f"TensorFlow: {name}": call for name, call in found.items()}


def main() -> None:
    """Answer until there is no more to read."""
    known = calls(sys.argv[1])
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        call = known[line.strip()]
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        print((time.perf_counter_ns() - start) / 1e3 / CALLS, flush=True)


if __name__ == "__main__":
    main()
