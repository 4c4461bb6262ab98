"""Compares Intel's kernels with numpy: python intel_operations.py PLUGIN

There is one operation for each thing that the host passes in a way of its own: attributes of each
type, lists of inputs, several outputs, quantized numbers, names of Intel's own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

from modular_tf.service.service import PluginService

# Of an element, as a part of the largest one that is expected.
TOLERANCES = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 3e-2}
EXAMPLES = 12

service = PluginService()
service.load("host_device", sys.argv[1])
device = service.device("CPU:0")


def types():
    """Return the types that oneDNN computes with on this processor."""
    flags = Path("/proc/cpuinfo").read_text("utf-8").split()
    half = [np.float16] if "avx512_fp16" in flags else []
    return [np.float32, *([ml_dtypes.bfloat16] if "avx512bw" in flags else []), *half]


def wide(array):
    return np.asarray(array, "float64")


def agree(found, expected, factor=1.0):
    """Compare an output with numpy's, within so many times the tolerance of its type."""
    array, expected = found.to_numpy(), wide(expected)
    tolerance = TOLERANCES[str(array.dtype)] * factor
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    assert array.shape == expected.shape, (array.shape, expected.shape)
    np.testing.assert_allclose(wide(array), expected, rtol=tolerance, atol=tolerance * scale)


class Draw:
    """Random sizes and arrays of one example."""

    def __init__(self, seed, dtype):
        self.random, self.dtype = np.random.default_rng(seed), dtype

    def sizes(self, count, low=0, high=7):
        return tuple(map(int, self.random.integers(low, high, count)))

    def array(self, *shape, scale=2.0, dtype=None):
        return self.random.uniform(-scale, scale, shape).astype(dtype or self.dtype)

    def flag(self):
        return bool(self.random.integers(2))


def matmul(draw):
    (rows, depth, columns), turn_a, turn_b = draw.sizes(3), draw.flag(), draw.flag()
    a, b = draw.array(rows, depth), draw.array(depth, columns)
    turned = (a.T.copy() if turn_a else a), (b.T.copy() if turn_b else b)
    for name in ("MatMul", "_ITEXMatMul"):
        found = device.op(name)(*turned, transpose_a=turn_a, transpose_b=turn_b)
        agree(found, wide(a) @ wide(b))


def lists_of_inputs(draw):
    shape = draw.sizes(2, 1)
    arrays = [draw.array(*shape) for _ in range(3)]
    agree(device.op("AddN")(arrays), sum(map(wide, arrays)), 2)
    found = device.op("Einsum")(arrays[:2], equation="ij,kj->ik" if shape[0] > 1 else "ij,ij->i")
    expected = np.einsum("ij,kj->ik" if shape[0] > 1 else "ij,ij->i", *map(wide, arrays[:2]))
    agree(found, expected, 2)


def fused(draw):
    rows, depth, columns = draw.sizes(3, 1)
    a, b, bias = draw.array(rows, depth), draw.array(depth, columns), draw.array(columns)
    found = device.op("_ITEXFusedMatMul")(a, b, [bias], fused_ops=["BiasAdd"])
    agree(found, wide(a) @ wide(b) + wide(bias))
    gradient = draw.array(rows, columns)
    product, of_bias = device.op("_ITEXFusedMatMulGrad")(a, gradient, fused_ops=["BiasAddGrad"])
    agree(product, wide(a).T @ wide(gradient))
    agree(of_bias, wide(gradient).sum(0))


def quantized(draw):
    x = draw.array(*draw.sizes(2, 1), scale=4, dtype="float32")
    numbers, low, high = device.op("QuantizeV2")(x, -4.0, 4.0, T="qint8", mode="SCALED")
    assert np.abs(numbers.to_numpy().astype("float64") - wide(x) * 127 / 4).max() <= 1
    restored = device.op("Dequantize")(numbers, low, high, mode="SCALED")
    assert np.allclose(restored.to_numpy(), x, atol=4 / 127)


for operation in (matmul, lists_of_inputs, fused, quantized):
    for dtype in types():
        for seed in range(EXAMPLES):
            print(operation.__name__, np.dtype(dtype), seed, flush=True)
            operation(Draw(seed, dtype))
print("compared", flush=True)
# Its exit handlers end the process with SIGSEGV after some operations on bfloat16.
os._exit(0)
