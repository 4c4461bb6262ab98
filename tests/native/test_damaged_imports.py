"""What a library says of its imports is read only where it has memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_SOURCE = Path(__file__).with_name("damaged_imports.c")
_DAMAGES = ("nothing", "sizes", "relocations", "relocations of nothing", "symbols", "names", "end")


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_library_with_damaged_imports_is_noted(run_python: PythonRunner, damage: str) -> None:
    objects = [compile_object(_SOURCE)]
    library = link_library("libdamaged.so", objects, ["-Wl,-z,norelro"])

    child = run_python(
        """
        import ctypes, os, sys
        from modular_tf.native.plugin_names import name_plugin, note_code

        path = os.path.realpath(sys.argv[1])
        ctypes.CDLL(path)
        with open("/proc/self/maps") as maps:
            base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(path + "\\n"))
        name_plugin("damaged", path)
        note_code(path, [base])
        print("noted", flush=True)
        os._exit(0)
        """,
        library,
        env={"DAMAGE": damage},
    )

    assert child.stdout == "noted\n"
