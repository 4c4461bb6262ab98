"""Poolings of images and volumes, and their gradients."""

from __future__ import annotations

import numpy as np
from subject import agree, compares, wide
from windows import drawn_windows


def drawn(draw, rank):
    """Return windows, an input without equal elements, and the attributes of a pooling."""
    windows = drawn_windows(draw, rank)
    x = draw.array(draw.int(1, 2), *windows.sizes, draw.int(1, 5))
    attrs = {
        "ksize": [1, *windows.kernel, 1],
        "strides": [1, *windows.strides, 1],
        "padding": windows.padding,
    }
    return windows, x, attrs


@compares("AvgPool", examples=20)
def average_of_images(draw):
    windows, x, attrs = drawn(draw, 2)
    agree(draw.op("AvgPool")(x, **attrs), windows.mean(wide(x)))


@compares("AvgPool3D")
def average_of_volumes(draw):
    windows, x, attrs = drawn(draw, 3)
    agree(draw.op("AvgPool3D")(x, **attrs), windows.mean(wide(x)))


@compares("AvgPoolGrad", examples=20)
def average_gradient(draw):
    windows, x, attrs = drawn(draw, 2)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1])
    found = draw.op("AvgPoolGrad")(np.array(x.shape, "int32"), gradient, **attrs)
    agree(found, windows.mean_gradient(wide(gradient)))


@compares("MaxPool", examples=20)
def largest(draw):
    windows, x, attrs = drawn(draw, 2)
    found = draw.op("MaxPool")(x, **attrs)
    agree(found[0] if isinstance(found, tuple) else found, windows.largest(wide(x)))


# Shorter types have many equal elements, and nothing says which of them gets the gradient.
@compares("_ITEXMaxPoolGrad", examples=20, types=("float32",))
def largest_gradient(draw):
    windows, x, attrs = drawn(draw, 2)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1])
    top, workspace = draw.own("MaxPool")(x, **attrs)
    found = draw.own("MaxPoolGrad")(x, top, gradient, workspace, **attrs)
    agree(found, windows.largest_gradient(wide(x), wide(gradient)))
