"""The one door to the compiled DLPack module."""

from __future__ import annotations

import atexit

from modular_tf.native._dlpack import (
    Tensor,
    bytes_of_elements,
    consume,
    export_by_table,
    import_by_table,
    note_interpreter_ends,
    repacked,
    set_work_stream_query,
)
from modular_tf.native.numpy_copy import copy_to_numpy

__all__ = [
    "Tensor",
    "bytes_of_elements",
    "consume",
    "export_by_table",
    "import_by_table",
    "repacked",
    "set_work_stream_query",
]

Tensor.__array__ = copy_to_numpy  # type: ignore[method-assign]  # written in Python, for numpy

atexit.register(note_interpreter_ends)
