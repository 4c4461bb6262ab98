"""Parts, orders and sizes of arrays; quantization; random numbers; attention."""

from __future__ import annotations

import numpy as np
from subject import agree, compares, device, wide

INDICES = ("int32", "int64")
ANY = ("float32", "float16", "bfloat16")


@compares("Transpose", examples=30, types=ANY)
def transpose(draw):
    shape = draw.shape(draw.int(1, 5), high=5)
    x = draw.array(*shape)
    order = list(range(len(shape)))
    for at in range(len(order)):
        other = draw.int(at, len(order) - 1)
        order[at], order[other] = order[other], order[at]
    found = draw.op("Transpose")(x, np.array(order, draw.of(INDICES)))
    agree(found, wide(x).transpose(order))


@compares("Slice", examples=30, types=ANY)
def part(draw):
    shape = draw.shape(draw.int(1, 4), high=6)
    x, kind = draw.array(*shape), draw.of(INDICES)
    begin = [draw.int(0, size) for size in shape]
    size = [draw.int(-1, total - first) for total, first in zip(shape, begin, strict=True)]
    where = tuple(
        slice(first, None if count < 0 else first + count)
        for first, count in zip(begin, size, strict=True)
    )
    found = draw.op("Slice")(x, np.array(begin, kind), np.array(size, kind))
    agree(found, wide(x)[where])


def positions(size, out, *, corners, centers):
    """Return where the elements of a resized row lie in the row."""
    scale = (size - 1) / (out - 1) if corners and out > 1 else size / out
    at = (np.arange(out) + 0.5) * scale - 0.5 if centers else np.arange(out) * scale
    return np.clip(at, 0, size - 1)


def weights_of(size, out, **how):
    """Return the matrix that resizes rows."""
    at = positions(size, out, **how)
    low = np.floor(at).astype(int)
    found = np.zeros((out, size))
    found[np.arange(out), low] += 1 - (at - low)
    found[np.arange(out), np.minimum(low + 1, size - 1)] += at - low
    return found


def resizing(draw):
    """Return an image, a size, the matrices of both dimensions, and the attributes."""
    x = draw.array(draw.int(1, 2), *draw.shape(2, 2, 6), draw.int(1, 4))
    size = draw.shape(2, 1, 9)
    corners, centers = False, True  # the plugin ends the process where it is asked for others
    down, across = (
        weights_of(before, after, corners=corners, centers=centers)
        for before, after in zip(x.shape[1:3], size, strict=True)
    )
    return x, size, down, across, {"align_corners": corners, "half_pixel_centers": centers}


@compares("ResizeBilinear", examples=20, types=("float32",))
def resized(draw):
    x, size, down, across, attrs = resizing(draw)
    found = draw.op("ResizeBilinear")(x, np.array(size, "int32"), **attrs)
    agree(found, np.einsum("yh,xw,bhwc->byxc", down, across, wide(x)), factor=4)


@compares("ResizeBilinearGrad", types=("float32",))
def resized_gradient(draw):
    x, size, down, across, attrs = resizing(draw)
    gradient = draw.array(x.shape[0], *size, x.shape[-1])
    found = draw.op("ResizeBilinearGrad")(gradient, x, **attrs)
    agree(found, np.einsum("yh,xw,byxc->bhwc", down, across, wide(gradient)), factor=4)


@compares("Dequantize", types=("float32",))
def dequantized(draw):
    x = np.array(draw.array(*draw.shape(2, 1, 8), low=-127, high=127), "int8")
    most = float(draw.int(1, 9))
    found = draw.op("Dequantize")(x, -most, most, T="qint8", mode="SCALED")
    agree(found, wide(x) * most / 127, factor=100)


@compares("QuantizeV2", types=("float32",))
def quantized(draw):
    x = draw.array(*draw.shape(2, 1, 8), low=-4, high=4)
    found = draw.op("QuantizeV2")(x, -4.0, 4.0, T="qint8", mode="SCALED")[0]
    array = found.to_numpy().astype("float64")
    assert np.abs(array - np.clip(wide(x) * 127 / 4, -128, 127)).max() <= 1


@compares("RandomUniform", types=("float32",))
def random_numbers(draw):
    shape = draw.shape(2, 30, 60)
    op, attrs = draw.op("RandomUniform"), {"dtype": "float", "seed": draw.int(1, 9), "seed2": 7}
    found = op(np.array(shape, "int32"), **attrs).to_numpy()
    assert found.shape == shape
    assert (found >= 0).all()
    assert (found < 1).all()
    assert 0.4 < found.mean() < 0.6


@compares("ScaledDotProductAttentionInference", types=("float32",))
def attention(draw):
    batch, heads, queries, keys, depth = draw.shape(5, 1, 4)
    query = draw.array(batch, heads, queries, depth)
    key, value = draw.array(batch, heads, keys, depth), draw.array(batch, heads, keys, depth)
    mask = draw.array(batch, 1, queries, keys)
    found = device().op("ScaledDotProductAttentionInference")(
        query, key, value, mask, use_mask=True
    )
    scores = np.exp(wide(query) @ wide(key).swapaxes(-1, -2) / np.sqrt(depth) + wide(mask))
    expected = scores / scores.sum(-1, keepdims=True) @ wide(value)
    agree(found, expected.swapaxes(1, 2))
