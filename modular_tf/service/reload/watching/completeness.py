"""A check by its bytes whether a library is complete or still being written."""

from __future__ import annotations

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.library_bounds import ELF_MAGIC
from modular_tf.errors import ElfError
from modular_tf.rules import loading as rules
from modular_tf.service.reload.watching.open_for_writing import is_open_for_writing

__all__ = ["why_incomplete", "why_unfinished"]


def why_unfinished(path: str) -> str | None:
    """Return why somebody seems to be still writing a file; None if nobody does. [any thread]"""
    return "it is open for writing" if is_open_for_writing(path) else why_incomplete(path)


def why_incomplete(path: str) -> str | None:
    """Return why a file seems incomplete; None if it does not. [any thread]

    Cut off libraries, files that begin like one or with nothing, and those with room for what is
    not there yet. What is no library at all is not waited for.
    """
    try:
        with ElfFile(path) as elf:
            return None if elf.image.has_whole_section_table() else "its section table is empty"
    except ElfError as error:
        if error.rule == rules.WHOLE_ELF:
            return error.message
        if error.rule == rules.IS_ELF and _may_become_a_library(path):
            return "nothing of its first bytes is there"
        return None


def _may_become_a_library(path: str) -> bool:
    """Whether the first bytes are the beginning of the right ones, or a hole."""
    try:
        with open(path, "rb") as stream:
            first = stream.read(len(ELF_MAGIC))
    except OSError:
        return False
    return ELF_MAGIC.startswith(first) or not any(first)
