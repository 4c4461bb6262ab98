"""An arena that another thread changes at a fork refuses the child, and serves the parent."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_program

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_SOURCES = (
    Path(__file__).parent / "abandoned_arena.cc",
    *(_NATIVE / "core" / f"{name}.cc" for name in (
        "arena", "call_counts", "call_trace",
        "error", "float_state", "fork_lock",
    )),
    _NATIVE / "host_runtime" / "status.c",
)  # fmt: skip


def test_an_arena_that_is_changed_at_a_fork_refuses_the_child():
    folders = [_NATIVE / "core", _NATIVE / "host_runtime"]
    objects = [compile_object(source, ["_GNU_SOURCE=1"], folders) for source in _SOURCES]
    program = link_program("abandoned_arena", objects, ["-lpthread"])

    done = subprocess.run([program], timeout=60, check=False)

    assert done.returncode == 0
