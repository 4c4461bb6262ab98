"""Checks of a file before its bytes are read: its first bytes and its length."""

from __future__ import annotations

__all__ = ["ELF_MAGIC", "MOST_BYTES"]

ELF_MAGIC = b"\x7fELF"
"""How every library begins."""

MOST_BYTES = 4 << 30
"""How long a library may be (LD-111).

Published plugins bring libraries of more than 2 GiB; a hash of so many bytes takes half a minute.
"""
