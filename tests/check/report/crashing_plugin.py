"""The reference plugin in memory with one fault: its rename_file crashes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

SOURCE = Path(__file__).with_name("crashing_rename.cc")
LINE = 1 + next(
    number
    for number, line in enumerate(SOURCE.read_text().splitlines())
    if line.endswith("// the line of the crash")
)
_REFERENCE = Path(__file__).parents[3] / "contrib" / "ram_filesystem" / "src"
_MACROS = ("TF_InitPlugin=reference_init_plugin", 'MTF_RAM_SCHEME="crash"')


@cache
def crashing_plugin(*options: str) -> Path:
    """Build the plugin and return its library.

    Args:
        options: More of the command lines of compiler and linker.
    """
    objects = [compile_object(each, _MACROS) for each in sorted(_REFERENCE.glob("*.c*"))]
    objects.append(compile_object(SOURCE, options=options))
    # The map keeps all functions but the entry point inside, as in most plugins.
    linked = ["-lpthread", f"-Wl,--version-script={_REFERENCE / 'exports.map'}", *options]
    return link_library("libcrashing_rename.so", objects, linked, cxx=True)
