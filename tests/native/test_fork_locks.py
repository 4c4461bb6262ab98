"""A lock of the core keeps threads apart, and a child does not find it taken by its parent."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_program

_CORE = Path(__file__).parents[2] / "modular_tf" / "native" / "core"
_PROGRAM = Path(__file__).with_name("fork_locks.cc")
_CASES = re.findall(r'^    \{"(\w+)"', _PROGRAM.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def program():
    sources = (_PROGRAM, _CORE / "fork_lock.cc")
    return link_program(
        "fork_locks", [compile_object(source, (), [_CORE]) for source in sources], ["-lpthread"]
    )


@pytest.mark.parametrize("case", _CASES)
def test_a_lock(case, program):
    done = subprocess.run([program, case], timeout=60, check=False)

    assert done.returncode == 0
