"""A call that was running at a fork ends in the child without a use of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_program

_CORE = Path(__file__).parents[2] / "modular_tf" / "native" / "core"


def test_a_call_may_end_in_a_forked_child():
    source = Path(__file__).with_name("gate_after_fork.cc")
    program = link_program("gate_after_fork", [compile_object(source, (), [_CORE])])

    done = subprocess.run([program], timeout=60, check=False)

    assert done.returncode == 0
