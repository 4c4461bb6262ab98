"""Layers of networks: inputs in lists, attributes of each type, and several outputs."""

from __future__ import annotations

from math import erf

import numpy as np
from fusion import fused
from numpy.lib.stride_tricks import sliding_window_view
from subject import agree, compares, device, wide

EPSILON = 1e-3
NONE = np.zeros(0, "float32")
BY_BATCH = (0, 1, 2)


def windows_of(x, kernel, step, *, writeable=False):
    """Return the windows of images, channels last: their places in the last two dimensions."""
    windows = sliding_window_view(x, kernel, axis=(1, 2), writeable=writeable)
    return windows[:, ::step, ::step]


def drawn_convolution(draw, *, strided_points=True):
    """Return an input, a filter, the attributes, and the windows of the padded input."""
    channels, outputs = draw.shape(2, 1, 6)
    kernel, step = draw.shape(2, 1, 3), draw.int(1, 2)
    if kernel == (1, 1) and not strided_points:
        step = 1
    x = draw.array(draw.int(1, 2), *draw.shape(2, 5, 9), channels)
    weights = draw.array(*kernel, channels, outputs)
    attrs = {"strides": [1, step, step, 1], "padding": draw.of(("VALID", "EXPLICIT"))}
    pads = ((0, 0), (0, 0))
    if attrs["padding"] == "EXPLICIT":
        pads = tuple(draw.shape(2, 0, 1) for _ in range(2))
        attrs["explicit_paddings"] = [0, 0, *pads[0], *pads[1], 0, 0]
    padded = np.pad(wide(x), ((0, 0), *pads, (0, 0)))
    return x, weights, attrs, windows_of(padded, kernel, step)


def convolved(windows, weights):
    return np.einsum("bijckl,klco->bijo", windows, wide(weights))


@compares("Conv2D", examples=30)
def convolution(draw):
    x, weights, attrs, windows = drawn_convolution(draw)
    agree(draw.op("Conv2D")(x, weights, **attrs), convolved(windows, weights))


@compares("_ITEXFusedConv2D", examples=20)
def fused_convolution(draw):
    x, weights, attrs, windows = drawn_convolution(draw)
    bias = draw.array(weights.shape[-1])
    ops, after = fused(draw, ["BiasAdd"])
    found = draw.own("FusedConv2D")(x, weights, [bias], [], fused_ops=ops, **attrs)
    agree(found, after(convolved(windows, weights) + wide(bias)))


def drawn_for_gradient(draw):
    """Return a convolution whose gradients this library computes within its memory.

    Filters of 1x1 have no strides here. With them oneDNN 3.3.0 of this library, when it computes
    the gradient of the filter, writes beyond the scratchpad whose size it asks for: guard pages
    behind it show that without a host too, for AVX-512 with two threads, for AVX2 with one.
    """
    return drawn_convolution(draw, strided_points=False)


def sizes_of(array):
    return np.array(array.shape, "int32")


@compares("Conv2DBackpropFilter", examples=30)
def filter_gradient(draw):
    x, weights, attrs, windows = drawn_for_gradient(draw)
    gradient = draw.array(*windows.shape[:3], weights.shape[-1])
    found = draw.op("Conv2DBackpropFilter")(x, sizes_of(weights), gradient, **attrs)
    agree(found, np.einsum("bijckl,bijo->klco", windows, wide(gradient)))


@compares("Conv2DBackpropInput", examples=30)
def input_gradient(draw):
    x, weights, attrs, windows = drawn_for_gradient(draw)
    gradient = draw.array(*windows.shape[:3], weights.shape[-1])
    found = draw.op("Conv2DBackpropInput")(sizes_of(x), weights, gradient, **attrs)
    _, _, above, below, left, right, *_ = attrs.get("explicit_paddings", [0] * 8)
    padded = np.pad(np.zeros(x.shape), ((0, 0), (above, below), (left, right), (0, 0)))
    kernel = weights.shape[:2]
    places = windows_of(padded, kernel, attrs["strides"][1], writeable=True)
    for place in np.ndindex(kernel):  # the windows overlap, but not in one place of all
        places[(..., *place)] += wide(gradient) @ wide(weights[place]).T
    rows, columns = x.shape[1:3]
    agree(found, padded[:, above : above + rows, left : left + columns])


@compares("DepthwiseConv2dNativeBackpropFilter", examples=20)
def depthwise_filter_gradient(draw):
    x, weights, attrs, windows = drawn_for_gradient(draw)
    channels, outputs = weights.shape[2:]
    gradient = draw.array(*windows.shape[:3], channels * outputs)
    op = draw.op("DepthwiseConv2dNativeBackpropFilter")
    by_channel = wide(gradient).reshape(*windows.shape[:4], outputs)
    found = op(x, sizes_of(weights), gradient, **attrs)
    agree(found, np.einsum("bijckl,bijco->klco", windows, by_channel))


@compares("AvgPool")
def average(draw):
    size, step = draw.int(1, 3), draw.int(1, 2)
    x = draw.array(draw.int(1, 2), *draw.shape(2, 5, 9), draw.int(1, 5))
    attrs = {"ksize": [1, size, size, 1], "strides": [1, step, step, 1], "padding": "VALID"}
    found = draw.op("AvgPool")(x, **attrs)
    agree(found, windows_of(wide(x), (size, size), step).mean((-2, -1)))


# Shorter types have many equal elements, and nothing says which of them gets the gradient.
@compares("_ITEXMaxPoolGrad", types=("float32",))
def largest_gradient(draw):
    rows, columns = draw.shape(2, 1, 4)
    x = draw.array(draw.int(1, 2), 2 * rows, 2 * columns, draw.int(1, 5))
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    top, workspace = draw.own("MaxPool")(x, **attrs)
    gradient = draw.array(x.shape[0], rows, columns, x.shape[-1])
    expected = windows_of(wide(x), (2, 2), 2).max((-2, -1))
    agree(top, expected)
    found = draw.own("MaxPoolGrad")(x, top, gradient, workspace, **attrs)
    is_largest = wide(x) == expected.repeat(2, axis=1).repeat(2, axis=2)
    agree(found, wide(gradient).repeat(2, axis=1).repeat(2, axis=2) * is_largest)


def normalized(x, axes):
    """Return an array with mean 0 and variance 1 along axes, the mean and the variance."""
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    even = (x - mean) / np.sqrt(variance + EPSILON)
    return even, np.squeeze(mean, axes), np.squeeze(variance, axes)


def image(draw, low=2):
    """Return an array of images, and a scale and an offset for each channel."""
    x = draw.array(*draw.shape(4, low, 5))
    channels = x.shape[-1]
    return x, draw.array(channels, low=0.5, dtype="float32"), draw.array(channels, dtype="float32")


@compares("FusedBatchNormV3")
def batch_training(draw):
    x, scale, offset = image(draw)
    found = draw.op("FusedBatchNormV3")(x, scale, offset, NONE, NONE, epsilon=EPSILON)
    even, mean, variance = normalized(wide(x), BY_BATCH)
    count = x.size // x.shape[-1]
    agree(found[0], even * wide(scale) + wide(offset), factor=4)
    agree(found[1], mean, str(x.dtype))
    agree(found[2], variance * count / (count - 1), str(x.dtype), factor=4)


@compares("FusedBatchNormV2 (inference)")
def batch_inference(draw):
    x, scale, offset = image(draw, 1)
    mean = draw.array(x.shape[-1], dtype="float32")
    variance = draw.array(x.shape[-1], low=0.5, dtype="float32")
    op = draw.op("FusedBatchNormV2")
    found = op(x, scale, offset, mean, variance, epsilon=EPSILON, is_training=False)
    expected = (wide(x) - wide(mean)) / np.sqrt(wide(variance) + EPSILON)
    agree(found[0], expected * wide(scale) + wide(offset), factor=4)


@compares("LayerNorm")
def layer_norm(draw):
    x, scale, offset = image(draw)
    found = device().op("LayerNorm")(x, scale, offset, epsilon=EPSILON)
    even, mean, variance = normalized(wide(x), (3,))
    agree(found[0], even * wide(scale) + wide(offset), factor=4)
    agree(found[1], mean, str(x.dtype))
    agree(found[2], variance, str(x.dtype), factor=4)


def drawn(draw):
    return draw.array(*draw.shape(draw.int(1, 4), high=6), low=-4, high=4)


@compares("LeakyRelu")
def leaky_relu(draw):
    x = drawn(draw)
    agree(draw.op("LeakyRelu")(x, alpha=0.3), np.where(wide(x) > 0, wide(x), 0.3 * wide(x)))


@compares("EluGrad")
def elu_gradient(draw):
    results = drawn(draw)
    gradient = draw.array(*results.shape)
    expected = wide(gradient) * np.where(wide(results) > 0, 1, wide(results) + 1)
    agree(draw.op("EluGrad")(gradient, results), expected)


@compares("Gelu")
def gelu(draw):
    x, approximate = drawn(draw), draw.bool()
    exact = wide(x)
    if approximate:
        inner = np.tanh(np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3))
    else:
        inner = np.vectorize(erf, otypes=["d"])(exact / np.sqrt(2))
    agree(device().op("Gelu")(x, approximate=approximate), 0.5 * exact * (1 + inner))


@compares("AddN")
def sum_of_arrays(draw):
    shape = draw.shape(draw.int(1, 4), high=6)
    arrays = [draw.array(*shape) for _ in range(draw.int(2, 5))]
    agree(draw.op("AddN")(arrays), sum(map(wide, arrays)))
