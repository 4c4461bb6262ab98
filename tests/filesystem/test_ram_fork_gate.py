"""The bundled ram plugin's handlers of forks."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_program

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1] / "contrib" / "ram_filesystem" / "src"


def test_handlers_without_memory_are_tried_again() -> None:
    sources = (_HERE / "fork_gate_without_memory.cc", _SOURCES / "fork_gate.cc")
    objects = [compile_object(source, header_folders=[_SOURCES]) for source in sources]
    program = link_program("fork_gate_without_memory", objects, ["-pthread"])

    assert subprocess.run([program], check=False, timeout=60).returncode == 0
