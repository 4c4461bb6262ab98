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


def average(draw, op, rank):
    windows, x, attrs = drawn(draw, rank)
    agree(draw.op(op)(x, **attrs), windows.mean(wide(x)))


def average_gradient(draw, op, rank):
    windows, x, attrs = drawn(draw, rank)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1])
    found = draw.op(op)(np.array(x.shape, "int32"), gradient, **attrs)
    agree(found, windows.mean_gradient(wide(gradient)))


def largest(draw, op, rank):
    windows, x, attrs = drawn(draw, rank)
    found = draw.op(op)(x, **attrs)
    agree(found[0] if isinstance(found, tuple) else found, windows.largest(wide(x)))


def largest_gradient(draw, op, rank):
    windows, x, attrs = drawn(draw, rank)
    gradient = draw.array(x.shape[0], *windows.out, x.shape[-1])
    top, workspace = draw.own(op)(x, **attrs)
    found = draw.own(f"{op}Grad")(x, top, gradient, workspace, **attrs)
    agree(found, windows.largest_gradient(wide(x), wide(gradient)))


@compares("AvgPool", examples=20)
def average_of_images(draw):
    average(draw, "AvgPool", 2)


@compares("AvgPool3D")
def average_of_volumes(draw):
    average(draw, "AvgPool3D", 3)


@compares("AvgPoolGrad", examples=20)
def average_gradient_of_images(draw):
    average_gradient(draw, "AvgPoolGrad", 2)


@compares("AvgPool3DGrad")
def average_gradient_of_volumes(draw):
    average_gradient(draw, "AvgPool3DGrad", 3)


@compares("MaxPool", examples=20)
def largest_of_images(draw):
    largest(draw, "MaxPool", 2)


@compares("MaxPool3D")
def largest_of_volumes(draw):
    largest(draw, "MaxPool3D", 3)


# Shorter types have many equal elements, and nothing says which of them gets the gradient.
@compares("_ITEXMaxPoolGrad", examples=20, types=("float32",))
def largest_gradient_of_images(draw):
    largest_gradient(draw, "MaxPool", 2)


@compares("_ITEXMaxPool3DGrad", types=("float32",))
def largest_gradient_of_volumes(draw):
    largest_gradient(draw, "MaxPool3D", 3)
