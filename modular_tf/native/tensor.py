"""The one door to the compiled DLPack module."""

from __future__ import annotations

from modular_tf.native._dlpack import Tensor, consume, export_by_table, import_by_table

__all__ = ["Tensor", "consume", "export_by_table", "import_by_table"]
