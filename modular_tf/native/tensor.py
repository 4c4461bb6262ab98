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
)

__all__ = [
    "Tensor",
    "bytes_of_elements",
    "consume",
    "export_by_table",
    "import_by_table",
    "repacked",
]

atexit.register(note_interpreter_ends)
