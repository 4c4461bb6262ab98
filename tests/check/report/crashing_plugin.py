"""The reference plugin in memory with one fault: its rename_file crashes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.check.building import changed_ram_plugin
from tests.fixtures.compiler import compile_object

SOURCE = Path(__file__).with_name("crashing_rename.cc")
LINE = 1 + next(
    number
    for number, line in enumerate(SOURCE.read_text().splitlines())
    if line.endswith("// the line of the crash")
)


@cache
def crashing_plugin(*options):
    """Build the plugin, with more options for compiler and linker, and return its library."""
    objects = [compile_object(SOURCE, options=options)]
    return changed_ram_plugin("crashing_rename", "crash", objects, options)
