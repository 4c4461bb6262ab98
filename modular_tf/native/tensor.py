"""The one door to the compiled DLPack module."""

from __future__ import annotations

import atexit

from modular_tf.native._dlpack import (
    PreparedCall,
    Tensor,
    bytes_of_elements,
    call_prepared,
    consume,
    export_by_table,
    import_by_table,
    note_interpreter_ends,
    repacked,
    set_work_stream_query,
    support_calls,
)
from modular_tf.native.numpy_copy import copy_to_numpy

__all__ = [
    "PreparedCall",
    "Tensor",
    "bytes_of_elements",
    "call_prepared",
    "consume",
    "export_by_table",
    "import_by_table",
    "repacked",
    "set_work_stream_query",
    "support_calls",
]

Tensor.__array__ = copy_to_numpy  # type: ignore[method-assign]  # written in Python, for numpy

atexit.register(note_interpreter_ends)
