"""Convolutions of images and volumes, by channel too, and what is fused with them."""

from __future__ import annotations

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


def forward(draw, op, rank, padding):
    windows, x, weights = drawn(draw, rank, padding=padding)
    found = draw.op(op)(x, weights, **attrs_of(windows))
    agree(found, windows.convolved(wide(x), wide(weights)))


@compares("Conv2D", examples=30)
def conv2d(draw):
    forward(draw, "Conv2D", 2, ALL)


@compares("Conv3D")
def conv3d(draw):
    forward(draw, "Conv3D", 3, ("SAME", "VALID"))


def by_channel(draw):
    windows, x, weights = drawn(draw, 2, low=1, dilated=False)
    step = draw.int(1, 2)  # the same in both dimensions
    windows = Windows(windows.sizes, windows.kernel, (step, step), (1, 1), windows.padding)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1] * weights.shape[-1])
    return windows, x, weights, gradient


@compares("DepthwiseConv2dNative", examples=20)
def depthwise(draw):
    windows, x, weights, _ = by_channel(draw)
    found = draw.op("DepthwiseConv2dNative")(x, weights, **attrs_of(windows))
    agree(found, windows.depthwise(wide(x), wide(weights)))


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
