"""The one door to the compiled DLPack module."""

from __future__ import annotations

from modular_tf.native._dlpack import (
    Tensor,
    bytes_of_elements,
    consume,
    export_by_table,
    import_by_table,
)

__all__ = ["Tensor", "bytes_of_elements", "consume", "export_by_table", "import_by_table"]
