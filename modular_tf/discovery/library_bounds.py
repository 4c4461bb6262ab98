"""What is asked of a file before its bytes are read: few things, which cost next to nothing."""

from __future__ import annotations

__all__ = ["ELF_MAGIC", "MOST_BYTES"]

ELF_MAGIC = b"\x7fELF"
"""How every library begins."""

MOST_BYTES = 2 << 30
"""How long a library may be (LD-111): code and data that refer to each other by 32 bits have no
more, and the hash of a longer file would take minutes."""
