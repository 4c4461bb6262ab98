"""Functions of each element, their gradients, and comparisons."""

from __future__ import annotations

from math import erf

import numpy as np
from subject import agree, compares, device, wide

SHAPES = 4  # the highest rank


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x, *, approximate):
    if approximate:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(erf, otypes=["d"])(x / np.sqrt(2)))


def slope(function, x):
    """Return the derivative of a smooth function."""
    step = 1e-6
    return (function(x + step) - function(x - step)) / (2 * step)


def drawn(draw, low=-4, high=4):
    return draw.array(*draw.shape(draw.int(1, SHAPES), high=6), low=low, high=high)


def of_each(op, function, *, own=False, **attrs):
    """Compare an operation that has one input."""

    @compares(f"_ITEX{op}" if own else op)
    def check(draw):
        x = drawn(draw)
        found = (draw.own(op) if own else draw.op(op))(x, **attrs)
        agree(found, function(wide(x)))


def gradient_of(op, function, **attrs):
    """Compare an operation of a gradient and the features, or the result, that it belongs to."""

    @compares(op)
    def check(draw):
        features = drawn(draw)
        gradient = draw.array(*features.shape)
        agree(
            draw.op(op)(gradient, features, **attrs),
            wide(gradient) * function(wide(features)),
        )


of_each("Elu", lambda x: np.where(x > 0, x, np.expm1(x)))
of_each("LeakyRelu", lambda x: np.where(x > 0, x, 0.3 * x), alpha=0.3)
of_each("Mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), own=True)
of_each("Swish", lambda x: x * sigmoid(x), own=True)
gradient_of("ReluGrad", lambda x: x > 0)
gradient_of("Relu6Grad", lambda x: (x > 0) & (x < 6))
gradient_of("LeakyReluGrad", lambda x: np.where(x > 0, 1, 0.3), alpha=0.3)
gradient_of("EluGrad", lambda y: np.where(y > 0, 1, y + 1))  # of the results, as TensorFlow's


def gelu_under(name):
    @compares(name)
    def forward(draw):
        x, approximate = drawn(draw), draw.bool()
        found = device().op(name)(x, approximate=approximate)
        agree(found, gelu(wide(x), approximate=approximate))

    @compares(f"{name}Grad")
    def backward(draw):
        x, approximate = drawn(draw), draw.bool()
        gradient = draw.array(*x.shape)
        found = device().op(f"{name}Grad")(gradient, x, approximate=approximate)
        expected = slope(lambda each: gelu(each, approximate=approximate), wide(x))
        agree(found, wide(gradient) * expected, factor=4)


gelu_under("Gelu")
gelu_under("ITEXGelu")


@compares("Softmax", examples=20)
def softmax(draw):
    x = draw.array(*draw.shape(draw.int(1, SHAPES), 1, 6), low=-4, high=4)
    powers = np.exp(wide(x))
    agree(draw.op("Softmax")(x), powers / powers.sum(-1, keepdims=True))


@compares("AddN", examples=20)
def sum_of_arrays(draw):
    shape = draw.shape(draw.int(1, SHAPES), high=6)
    arrays = [draw.array(*shape) for _ in range(draw.int(2, 5))]
    agree(draw.op("AddN")(arrays), sum(map(wide, arrays)))


def comparison(op, function):
    @compares(f"_ITEX{op}WithCast")
    def check(draw):
        shape = draw.shape(draw.int(1, SHAPES), 1, 6)
        x = np.round(draw.array(*shape))
        y = np.round(draw.array(*(1 if draw.bool() else size for size in shape)))
        agree(draw.own(f"{op}WithCast")(x, y), function(wide(x), wide(y)))


for _op, _function in (
    ("Less", np.less),
    ("LessEqual", np.less_equal),
    ("Greater", np.greater),
    ("GreaterEqual", np.greater_equal),
    ("Equal", np.equal),
    ("NotEqual", np.not_equal),
):
    comparison(_op, _function)
