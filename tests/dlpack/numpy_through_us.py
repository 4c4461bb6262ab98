"""A pytest plugin: `numpy.from_dlpack` with a tensor of ours between producer and consumer."""

from __future__ import annotations

from typing import Any

import numpy as np

from modular_tf.dlpack import from_dlpack

_own = np.from_dlpack


def _through_us(producer: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    return _own(from_dlpack(producer, device=device, copy=copy))


np.from_dlpack = _through_us
