"""What the programs of this folder share: the device, random arrays, comparison, and the report."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from modular_tf.service.service import PluginService

# Of an element, as a part of the largest one that is expected.
TOLERANCES = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 3e-2}
PREFIX = "_ITEX"
SEEDS = st.integers(0, 2**32 - 1)

checks: dict[str, Any] = {}


@cache
def service() -> PluginService:
    """Return the service of the program."""
    made = PluginService()
    made.load("host_device", sys.argv[1])
    return made


@cache
def device() -> Any:
    """Return the host's device, with Intel's kernels loaded."""
    return service().device("CPU:0")


@cache
def machine_types() -> tuple[str, ...]:
    """Return the types that oneDNN computes with on this processor."""
    flags = Path("/proc/cpuinfo").read_text("utf-8").split()
    found = ["float32"]
    if "avx512bw" in flags:
        found.append("bfloat16")
    if "avx512_fp16" in flags:
        found.append("float16")
    return tuple(found)


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


class Draw:
    """Draws of one example."""

    def __init__(self, data: Any, types: tuple[str, ...]) -> None:
        self._data = data
        self.type = self.of(types)
        self._generator = np.random.default_rng(data.draw(SEEDS))

    def of(self, values: Any) -> Any:
        return self._data.draw(st.sampled_from(tuple(values)))

    def bool(self) -> bool:
        return bool(self.of((False, True)))

    def int(self, low: int, high: int) -> int:
        return int(self._data.draw(st.integers(low, high)))

    def shape(self, rank: int, low: int = 0, high: int = 9) -> tuple[int, ...]:
        return tuple(self.int(low, high) for _ in range(rank))

    def array(self, *shape: int, low: float = -2, high: float = 2, dtype: str = "") -> Any:
        """Return an array of the example's type."""
        values = self._generator.uniform(low, high, shape)
        return values.astype(dtype_of(dtype or self.type))

    def op(self, name: str) -> Any:
        """Return an operation by the plugin's name, or by the standard one."""
        return device().op(f"{PREFIX}{name}" if self.bool() else name)

    def own(self, name: str) -> Any:
        return device().op(f"{PREFIX}{name}")


def wide(array: Any) -> Any:
    """Return an array in the precision of the references."""
    return np.asarray(array, "float64")


def agree(found: Any, expected: Any, dtype: str = "", factor: float = 1.0) -> None:
    """Compare an output with numpy's, within the tolerance of its type.

    Args:
        found: The output.
        expected: What numpy has found.
        dtype: The type whose tolerance counts, by default the output's.
        factor: How many times the tolerance is allowed.
    """
    array, expected = found.to_numpy(), wide(expected)
    assert array.shape == expected.shape, (array.shape, expected.shape)
    tolerance = TOLERANCES[dtype or str(array.dtype)] * factor
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(array), expected, rtol=tolerance, atol=tolerance * scale)


def compares(op: str, examples: int = 15, types: tuple[str, ...] | None = None) -> Any:
    """Have a function compare one operation with numpy, for random shapes and elements."""

    def register(check: Any) -> Any:
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def run(data: Any) -> None:
            check(Draw(data, types or machine_types()))

        assert op not in checks
        checks[op] = run
        return check

    return register


def main() -> None:
    """Run the comparisons of the modules that are named, and print the failures by operation."""
    for name in sys.argv[2].split(","):
        importlib.import_module(name)
    found: dict[str, str | None] = {}
    for op in sys.argv[3:] or checks:
        try:
            checks[op]()
            found[op] = None
        except Exception:  # noqa: BLE001  (the test reports it)
            found[op] = traceback.format_exc()
    print(json.dumps(found), flush=True)
    # Where the processor has bfloat16, the library ends a process that made convolutions of it with
    # SIGSEGV in its exit handlers. What is compared here has been printed by then.
    os._exit(0)
