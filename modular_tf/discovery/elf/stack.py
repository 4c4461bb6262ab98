"""Whether loading a library would make the stacks of a process executable."""

from __future__ import annotations

from contextlib import closing

from modular_tf.discovery.elf.image import Image
from modular_tf.discovery.elf.source import ByteSource

__all__ = ["wants_executable_stack"]


def wants_executable_stack(path: str) -> bool:
    """Tell by the file's frame alone.

    Raises:
        ElfError: It is not a readable, whole ELF file (LD-002 to LD-005).
    """
    with closing(ByteSource(path)) as source:
        return Image(source).wants_executable_stack
