"""The bundled ram plugin's handlers of forks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_program

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1] / "contrib" / "ram_filesystem" / "src"


def _built(name: str) -> Path:
    sources = (_HERE / f"{name}.cc", _SOURCES / "fork_gate.cc")
    objects = [compile_object(source, header_folders=[_SOURCES]) for source in sources]
    return link_program(name, objects, ["-pthread"])


@pytest.mark.parametrize("name", ["fork_gate_without_memory", "fork_gate_in_a_call"])
def test_the_gate(name: str) -> None:
    """Handlers without memory are tried again; a fork in a call leaves the count as it is."""
    assert subprocess.run([_built(name)], check=False, timeout=60).returncode == 0
