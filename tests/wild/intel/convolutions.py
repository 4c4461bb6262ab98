"""Convolutions of images and volumes, by channel too, and what is fused."""

from __future__ import annotations

import numpy as np
from fusion import ACTIVATIONS, fused
from subject import agree, compares, wide
from windows import Windows, drawn_windows


def lengthened(values):
    return [1, *values, 1]


def attrs_of(windows):
    """Return the attributes of an operation with such windows."""
    attrs = {"strides": lengthened(windows.strides), "padding": windows.padding}
    attrs["dilations"] = lengthened(windows.dilations)
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


@compares("Conv2D", examples=30)
def conv2d(draw):
    windows, x, weights = drawn(draw, 2, padding=("SAME", "VALID", "EXPLICIT"))
    found = draw.op("Conv2D")(x, weights, **attrs_of(windows))
    agree(found, windows.convolved(wide(x), wide(weights)))


@compares("Conv3D")
def conv3d(draw):
    windows, x, weights = drawn(draw, 3)
    found = draw.op("Conv3D")(x, weights, **attrs_of(windows))
    agree(found, windows.convolved(wide(x), wide(weights)))


@compares("DepthwiseConv2dNative", examples=20)
def depthwise(draw):
    windows, x, weights = drawn(draw, 2, low=1, dilated=False)
    step = draw.int(1, 2)  # the same in both dimensions
    windows = Windows(windows.sizes, windows.kernel, (step, step), (1, 1), windows.padding)
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


@compares("_ITEXPadWithConv2D")
def padded_conv2d(draw):
    """The padding is an input."""
    _, x, weights = drawn(draw, 2, low=1)
    pads, ones = tuple(draw.shape(2, 0, 2) for _ in range(2)), (1, 1)
    windows = Windows(x.shape[1:-1], weights.shape[:-2], ones, ones, "EXPLICIT", pads)
    attrs = {"strides": lengthened(ones), "padding": "VALID", "dilations": lengthened(ones)}
    paddings = np.array([(0, 0), *pads, (0, 0)], "int32")
    found = draw.own("PadWithConv2D")(x, weights, paddings, **attrs)
    agree(found, windows.convolved(wide(x), wide(weights)))
