"""Convolutions of images and volumes, by channel too, with their gradients and what is fused."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from fusion import ACTIVATIONS, fused
from subject import agree, compares, wide
from windows import Windows, drawn_windows

ALL = ("SAME", "VALID", "EXPLICIT")


def lengthened(values):
    return [1, *values, 1]


def attrs_of(windows):
    """Return the attributes of an operation with such windows."""
    attrs = {
        "strides": lengthened(windows.strides),
        "padding": windows.padding,
        "dilations": lengthened(windows.dilations),
    }
    if windows.explicit:
        pairs = ((0, 0), *windows.explicit, (0, 0))
        attrs["explicit_paddings"] = [each for pair in pairs for each in pair]
    return attrs


def drawn(draw, rank, *, low=0, padding=("SAME", "VALID"), dilated=None):
    """Return windows, an input and a filter."""
    dilated = draw.bool() if dilated is None else dilated
    windows = drawn_windows(draw, rank, dilated=dilated, padding=padding)
    channels, outputs = draw.shape(2, 1, 6)
    x = draw.array(draw.int(low, 2), *windows.sizes, channels)
    return windows, x, draw.array(*windows.kernel, channels, outputs)


def drawn_for_gradient(draw, rank):
    """Return windows, an input, a filter, and a gradient of the outputs.

    Filters of 1x1 have no strides here. With them oneDNN 3.3.0 of this library, when it computes
    the gradient of the filter, writes beyond the scratchpad whose size it asks for: guard pages
    behind it show that without a host too, for AVX-512 with two threads, for AVX2 with one.
    """
    windows, x, weights = drawn(draw, rank, low=1)
    if prod(windows.kernel) == 1:
        windows = replace(windows, strides=(1,) * rank)
    return windows, x, weights, draw.array(x.shape[0], *windows.out, weights.shape[-1])


def sizes_of(array):
    return np.array(array.shape, "int32")


def forward(draw, op, rank, padding):
    windows, x, weights = drawn(draw, rank, padding=padding)
    found = draw.op(op)(x, weights, **attrs_of(windows))
    agree(found, windows.convolved(wide(x), wide(weights)))


def to_input(draw, op, rank):
    windows, x, weights, gradient = drawn_for_gradient(draw, rank)
    found = op(sizes_of(x), weights, gradient, **attrs_of(windows))
    agree(found, windows.input_gradient(wide(weights), wide(gradient)))


def to_filter(draw, op, rank):
    windows, x, weights, gradient = drawn_for_gradient(draw, rank)
    found = op(x, sizes_of(weights), gradient, **attrs_of(windows))
    agree(found, windows.filter_gradient(wide(x), wide(gradient)))


@compares("Conv2D", examples=30)
def conv2d(draw):
    forward(draw, "Conv2D", 2, ALL)


@compares("Conv2DBackpropInput", examples=20)
def conv2d_input(draw):
    to_input(draw, draw.op("Conv2DBackpropInput"), 2)


@compares("Conv2DBackpropFilter", examples=20)
def conv2d_filter(draw):
    to_filter(draw, draw.op("Conv2DBackpropFilter"), 2)


@compares("Conv3D")
def conv3d(draw):
    forward(draw, "Conv3D", 3, ("SAME", "VALID"))


@compares("_ITEXConv3DBackpropInputV2")
def conv3d_input(draw):
    to_input(draw, draw.own("Conv3DBackpropInputV2"), 3)


@compares("_ITEXConv3DBackpropFilterV2")
def conv3d_filter(draw):
    to_filter(draw, draw.own("Conv3DBackpropFilterV2"), 3)


def by_channel(draw, *, strided_points=False):
    windows, x, weights = drawn(draw, 2, low=1, dilated=False)
    step = draw.int(1, 2)  # the same in both dimensions
    if prod(windows.kernel) == 1 and not strided_points:  # as above
        step = 1
    windows = Windows(windows.sizes, windows.kernel, (step, step), (1, 1), windows.padding)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1] * weights.shape[-1])
    return windows, x, weights, gradient


@compares("DepthwiseConv2dNative", examples=20)
def depthwise(draw):
    windows, x, weights, _ = by_channel(draw, strided_points=True)
    found = draw.op("DepthwiseConv2dNative")(x, weights, **attrs_of(windows))
    agree(found, windows.depthwise(wide(x), wide(weights)))


@compares("DepthwiseConv2dNativeBackpropInput")
def depthwise_input(draw):
    windows, x, weights, gradient = by_channel(draw)
    found = draw.op("DepthwiseConv2dNativeBackpropInput")(
        sizes_of(x), weights, gradient, **attrs_of(windows)
    )
    agree(found, windows.depthwise_input_gradient(wide(weights), wide(gradient)))


@compares("DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter(draw):
    windows, x, weights, gradient = by_channel(draw)
    found = draw.op("DepthwiseConv2dNativeBackpropFilter")(
        x, sizes_of(weights), gradient, **attrs_of(windows)
    )
    agree(found, windows.depthwise_filter_gradient(wide(x), wide(gradient)))


# -- fused ones: a bias, a sum, an activation ---------------------------------------------------


@compares("_ITEXFusedConv2D", examples=20)
def fused_conv2d(draw):
    windows, x, weights = drawn(draw, 2, low=1)
    bias = draw.array(weights.shape[-1])
    ops, after = fused(draw, ["BiasAdd"])
    found = draw.own("FusedConv2D")(x, weights, [bias], [], fused_ops=ops, **attrs_of(windows))
    agree(found, after(windows.convolved(wide(x), wide(weights)) + wide(bias)))


@compares("_ITEXFusedConv2DWithSum")
def fused_conv2d_with_sum(draw):
    windows, x, weights = drawn(draw, 2, low=1)
    bias = draw.array(weights.shape[-1])
    addend = draw.array(x.shape[0], *windows.out, weights.shape[-1])
    name = draw.of((None, "Relu"))
    ops = ["BiasAdd", "Add", *([name] if name else [])]
    found = draw.own("FusedConv2DWithSum")(
        x, weights, [bias, addend], fused_ops=ops, **attrs_of(windows)
    )
    expected = windows.convolved(wide(x), wide(weights)) + wide(bias) + wide(addend)
    agree(found, ACTIVATIONS[name](expected))


@compares("_ITEXFusedConv3D")
def fused_conv3d(draw):
    windows, x, weights = drawn(draw, 3, low=1)
    bias = draw.array(weights.shape[-1])
    found = draw.own("FusedConv3D")(x, weights, [bias], fused_ops=["BiasAdd"], **attrs_of(windows))
    agree(found, windows.convolved(wide(x), wide(weights)) + wide(bias))


@compares("_ITEXFusedDepthwiseConv2dNative")
def fused_depthwise(draw):
    windows, x, weights, gradient = by_channel(draw)
    bias = draw.array(gradient.shape[-1])
    found = draw.own("FusedDepthwiseConv2dNative")(
        x, weights, [bias], fused_ops=["BiasAdd"], **attrs_of(windows)
    )
    agree(found, windows.depthwise(wide(x), wide(weights)) + wide(bias))


def with_bias(draw, op, rank):
    windows, x, weights, gradient = drawn_for_gradient(draw, rank)
    found, bias = draw.own(op)(
        x, sizes_of(weights), gradient, fused_ops=["BiasAddGrad"], **attrs_of(windows)
    )
    agree(found, windows.filter_gradient(wide(x), wide(gradient)))
    agree(bias, wide(gradient).sum(tuple(range(rank + 1))), factor=4)


@compares("_ITEXConv2DBackpropFilterWithBias")
def conv2d_filter_with_bias(draw):
    with_bias(draw, "Conv2DBackpropFilterWithBias", 2)


@compares("_ITEXConv3DBackpropFilterWithBias")
def conv3d_filter_with_bias(draw):
    with_bias(draw, "Conv3DBackpropFilterWithBias", 3)


# -- with a padding that is an input --------------------------------------------------------------


def padded(draw, rank):
    """Return windows with paddings of their own, an input, a filter, and the paddings."""
    _, x, weights = drawn(draw, rank, low=1)
    pads = tuple(draw.shape(2, 0, 2) for _ in range(rank))
    ones = (1,) * rank
    windows = Windows(x.shape[1:-1], weights.shape[:-2], ones, ones, "EXPLICIT", pads)
    attrs = {"strides": lengthened(ones), "padding": "VALID", "dilations": lengthened(ones)}
    return windows, x, weights, np.array([(0, 0), *pads, (0, 0)], "int32"), attrs


@compares("_ITEXPadWithConv2D")
def padded_conv2d(draw):
    windows, x, weights, pads, attrs = padded(draw, 2)
    found = draw.own("PadWithConv2D")(x, weights, pads, **attrs)
    agree(found, windows.convolved(wide(x), wide(weights)))


@compares("_ITEXPadWithConv3D")
def padded_conv3d(draw):
    windows, x, weights, pads, attrs = padded(draw, 3)
    found = draw.own("PadWithConv3D")(x, weights, pads, **attrs)
    agree(found, windows.convolved(wide(x), wide(weights)))


@compares("_ITEXPadWithFusedConv2D")
def padded_fused_conv2d(draw):
    windows, x, weights, pads, attrs = padded(draw, 2)
    bias = draw.array(weights.shape[-1])
    found = draw.own("PadWithFusedConv2D")(
        x, weights, [bias], pads, fused_ops=["BiasAdd", "Relu"], **attrs
    )
    expected = windows.convolved(wide(x), wide(weights)) + wide(bias)
    agree(found, np.maximum(expected, 0))


@compares("_ITEXPadWithConv2DBackpropFilter")
def padded_conv2d_filter(draw):
    windows, x, weights, pads, attrs = padded(draw, 2)
    gradient = draw.array(x.shape[0], *windows.out, weights.shape[-1])
    found = draw.own("PadWithConv2DBackpropFilter")(x, sizes_of(weights), gradient, pads, **attrs)
    agree(found, windows.filter_gradient(wide(x), wide(gradient)))
