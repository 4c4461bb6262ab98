"""Windows that slide over arrays, channels last: convolutions, poolings and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Windows:
    """Where the windows of an array lie.

    Attributes:
        sizes: Of the array, without batch and channels.
        kernel: Sizes of a window.
        strides: From one to the next.
        dilations: From one element of a window to the next.
        padding: SAME, VALID or EXPLICIT.
        explicit: Pairs of paddings, for EXPLICIT.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str
    explicit: tuple[tuple[int, int], ...] = ()

    @cached_property
    def pads(self):
        """The elements before and after each dimension."""
        if self.padding != "SAME":
            return self.explicit or ((0, 0),) * len(self.sizes)
        total = [
            max((out - 1) * stride + span - size, 0)
            for out, stride, span, size in zip(
                self.out, self.strides, self._spans, self.sizes, strict=True
            )
        ]
        return tuple((each // 2, each - each // 2) for each in total)

    @cached_property
    def out(self):
        """How many windows there are in each dimension."""
        if self.padding == "SAME":
            return tuple(
                -(-size // stride) for size, stride in zip(self.sizes, self.strides, strict=True)
            )
        return tuple(
            (size + sum(pad) - span) // stride + 1
            for size, pad, span, stride in zip(
                self.sizes, self.pads, self._spans, self.strides, strict=True
            )
        )

    @property
    def _spans(self):
        return [(size - 1) * by + 1 for size, by in zip(self.kernel, self.dilations, strict=True)]

    def padded(self, x, value=0.0):
        return np.pad(x, ((0, 0), *self.pads, (0, 0)), constant_values=value)

    def cropped(self, padded):
        inner = [
            slice(pad[0], pad[0] + size) for pad, size in zip(self.pads, self.sizes, strict=True)
        ]
        return padded[(slice(None), *inner)]

    def taps(self):
        """Yield each place in a window, and where all windows have it in the padded array."""
        for place in np.ndindex(*self.kernel):
            where = [
                slice(at * by, at * by + (count - 1) * stride + 1, stride)
                for at, by, count, stride in zip(
                    place, self.dilations, self.out, self.strides, strict=True
                )
            ]
            yield place, (slice(None), *where)

    # -- convolutions; filters are [*kernel, channels, outputs] -----------------------------------

    def convolved(self, x, weights):
        padded = self.padded(x)
        return sum(padded[where] @ weights[place] for place, where in self.taps())

    def input_gradient(self, weights, gradient):
        channels = weights.shape[-2]
        padded = self.padded(np.zeros((gradient.shape[0], *self.sizes, channels)))
        for place, where in self.taps():
            padded[where] += gradient @ weights[place].T
        return self.cropped(padded)

    def filter_gradient(self, x, gradient):
        padded, outputs = self.padded(x), gradient.shape[-1]
        found = np.zeros((*self.kernel, x.shape[-1], outputs))
        for place, where in self.taps():
            found[place] = padded[where].reshape(-1, x.shape[-1]).T @ gradient.reshape(-1, outputs)
        return found

    # -- one filter for each channel: [*kernel, channels, multiplier] -----------------------------

    def depthwise(self, x, weights):
        padded = self.padded(x)
        found = sum(padded[where][..., None] * weights[place] for place, where in self.taps())
        return found.reshape(*found.shape[:-2], -1)

    def depthwise_input_gradient(self, weights, gradient):
        split = gradient.reshape(*gradient.shape[:-1], *weights.shape[-2:])
        padded = self.padded(np.zeros((gradient.shape[0], *self.sizes, weights.shape[-2])))
        for place, where in self.taps():
            padded[where] += (split * weights[place]).sum(-1)
        return self.cropped(padded)

    def depthwise_filter_gradient(self, x, gradient):
        padded = self.padded(x)
        split = gradient.reshape(*gradient.shape[:-1], x.shape[-1], -1)
        found = np.zeros((*self.kernel, *split.shape[-2:]))
        axes = tuple(range(gradient.ndim - 1))
        for place, where in self.taps():
            found[place] = (padded[where][..., None] * split).sum(axes)
        return found

    # -- poolings ---------------------------------------------------------------------------------

    def largest(self, x):
        padded = self.padded(x, -np.inf)
        return np.max([padded[where] for _, where in self.taps()], axis=0)

    def largest_gradient(self, x, gradient):
        padded, top = self.padded(x, -np.inf), self.largest(x)
        found = np.zeros_like(padded)
        for _, where in self.taps():
            found[where] += gradient * (padded[where] == top)
        return self.cropped(found)

    @cached_property
    def counts(self):
        """How many elements of the array itself each window has."""
        ones = self.padded(np.ones((1, *self.sizes, 1)))
        return sum(ones[where] for _, where in self.taps())

    def mean(self, x):
        padded = self.padded(x)
        return sum(padded[where] for _, where in self.taps()) / self.counts

    def mean_gradient(self, gradient):
        padded = self.padded(np.zeros((gradient.shape[0], *self.sizes, gradient.shape[-1])))
        for _, where in self.taps():
            padded[where] += gradient / self.counts
        return self.cropped(padded)


def drawn_windows(draw, rank, *, dilated=False, padding=("SAME", "VALID")):
    """Return random windows with a window at least in each dimension."""
    sizes, kernel = draw.shape(rank, 5, 9), draw.shape(rank, 1, 3)
    strides = draw.shape(rank, 1, 2) if not dilated else (1,) * rank
    dilations = draw.shape(rank, 1, 2) if dilated else (1,) * rank
    chosen = draw.of(padding)
    explicit = tuple(draw.shape(2, 0, 1) for _ in sizes) if chosen == "EXPLICIT" else ()
    return Windows(sizes, kernel, strides, dilations, chosen, explicit)
