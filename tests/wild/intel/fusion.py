"""What kernels do to a result before they store it."""

from __future__ import annotations

import numpy as np

ACTIVATIONS = {
    None: lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x: np.where(x > 0, x, 0.2 * x),
}


def fused(draw, after):
    """Return the operations of a fused product and the last of them as a function."""
    name = draw.of(ACTIVATIONS)
    return [*after, *([name] if name else [])], ACTIVATIONS[name]
