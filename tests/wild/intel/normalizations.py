"""Normalizations by batch, layer and instance, and their gradients."""

from __future__ import annotations

import numpy as np
from subject import agree, compares, device, wide

EPSILON = 1e-3


def normalized(x, axes):
    """Return an array with mean 0 and variance 1 along axes, the mean and the variance."""
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (
        (x - mean) / np.sqrt(variance + EPSILON),
        np.squeeze(mean, axes),
        np.squeeze(variance, axes),
    )


def normalized_gradient(x, scale, gradient, axes):
    """Return the gradients of input, scale and offset; the scale is of the last axis."""
    even = normalized(x, axes)[0]
    deviation = np.sqrt(x.var(axes, keepdims=True) + EPSILON)
    scaled = gradient * scale
    to_input = scaled - scaled.mean(axes, keepdims=True)
    to_input -= even * (scaled * even).mean(axes, keepdims=True)
    others = tuple(range(x.ndim - 1))
    return to_input / deviation, (gradient * even).sum(others), gradient.sum(others)


def image(draw, low=2):
    """Return an array of images, and a scale and an offset for each channel."""
    x = draw.array(*draw.shape(4, low, 5))
    channels = x.shape[-1]
    return x, draw.array(channels, low=0.5, dtype="float32"), draw.array(channels, dtype="float32")


NONE = np.zeros(0, "float32")
BY_BATCH = (0, 1, 2)


def batch_training(op, types):
    @compares(op, types=types)
    def training(draw):
        x, scale, offset = image(draw)
        found = draw.op(op)(x, scale, offset, NONE, NONE, epsilon=EPSILON)
        even, mean, variance = normalized(wide(x), BY_BATCH)
        count = x.size // x.shape[-1]
        agree(found[0], even * wide(scale) + wide(offset), factor=4)
        agree(found[1], mean, str(x.dtype))
        agree(found[2], variance * count / (count - 1), str(x.dtype), factor=4)


def batch_inference(op, types):
    @compares(f"{op} (inference)", types=types)
    def inference(draw):
        x, scale, offset = image(draw, 1)
        mean = draw.array(x.shape[-1], dtype="float32")
        variance = draw.array(x.shape[-1], low=0.5, dtype="float32")
        found = draw.op(op)(x, scale, offset, mean, variance, epsilon=EPSILON, is_training=False)
        expected = (wide(x) - wide(mean)) / np.sqrt(wide(variance) + EPSILON)
        agree(found[0], expected * wide(scale) + wide(offset), factor=4)


def batch_gradient(forward, op, extra, types):
    @compares(op, types=types)
    def gradient(draw):
        x, scale, offset = image(draw)
        above = draw.array(*x.shape)
        made = draw.own(forward)(x, scale, offset, NONE, NONE, epsilon=EPSILON)
        kept = made[3 : 5 + extra]
        found = draw.op(op)(above, x, scale, *kept, epsilon=EPSILON)
        expected = normalized_gradient(wide(x), wide(scale), wide(above), BY_BATCH)
        for one, other in zip(found[:3], expected, strict=True):
            agree(one, other, str(x.dtype), factor=20)


# The scale of the first version has the type of the images; here it is always float32.
for _version, _extra, _types in (("", 0, ("float32",)), ("V2", 0, None), ("V3", 1, None)):
    batch_training(f"FusedBatchNorm{_version}", _types)
    batch_inference(f"FusedBatchNorm{_version}", _types)
    batch_gradient(f"FusedBatchNorm{_version}", f"FusedBatchNormGrad{_version}", _extra, _types)


@compares("_ITEXFusedBatchNormEx")
def batch_norm_with_activation(draw):
    x, scale, offset = image(draw)
    found = draw.own("FusedBatchNormEx")(
        x, scale, offset, NONE, NONE, [], epsilon=EPSILON, activation_mode="Relu"
    )
    expected = normalized(wide(x), BY_BATCH)[0] * wide(scale) + wide(offset)
    agree(found[0], np.maximum(expected, 0), factor=4)


def layer(name):
    @compares(name)
    def forward(draw):
        x, scale, offset = image(draw)
        found = device().op(name)(x, scale, offset, epsilon=EPSILON)
        even, mean, variance = normalized(wide(x), (3,))
        agree(found[0], even * wide(scale) + wide(offset), factor=4)
        agree(found[1], mean, str(x.dtype))
        agree(found[2], variance, str(x.dtype), factor=4)


layer("LayerNorm")
layer("ITEXLayerNorm")


@compares("_ITEXInstanceNorm")
def instance_norm(draw):
    x, scale, offset = image(draw)
    found = draw.own("InstanceNorm")(x, scale, offset, epsilon=EPSILON)
    agree(found, normalized(wide(x), (1, 2))[0] * wide(scale) + wide(offset), factor=4)


@compares("_ITEXFusedInstanceNorm")
def instance_norm_with_activation(draw):
    x, scale, offset = image(draw)
    found = draw.own("FusedInstanceNorm")(x, scale, offset, epsilon=EPSILON, activation_mode="Relu")
    expected = normalized(wide(x), (1, 2))[0] * wide(scale) + wide(offset)
    agree(found, np.maximum(expected, 0), factor=4)
