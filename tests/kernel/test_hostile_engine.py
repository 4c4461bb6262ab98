"""Kernels that throw, keep, and never end: the process goes on, and nothing of theirs is lost."""

from __future__ import annotations

from pathlib import Path

from tests.kernel.kernels import kernel_library


def test_the_process_outlives_hostile_kernels(run_python):
    done = run_python(
        Path(__file__).with_name("hostile_engine.py"), kernel_library("hostile_engine")
    )

    assert done.stdout == "survived\n"
