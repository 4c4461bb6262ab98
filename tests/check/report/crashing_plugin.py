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
def crashing_plugin():
    """Build the plugin and return its library."""
    return changed_ram_plugin("crashing_rename", "crash", [compile_object(SOURCE)])
