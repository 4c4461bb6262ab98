"""Kernels that throw, keep, and never end: the process goes on, and nothing of theirs is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    "case",
    [
        "deallocators",
        "callbacks",
        "locks",
        "kept_inputs",
        "create",
        "abandoned",
        "shapes",
        "changing_shapes",
    ],
)
def test_the_process_outlives_a_hostile_kernel(case: str, run_python: PythonRunner) -> None:
    source = _FOLDER / "hostile_engine.cc"
    library = link_library("libmtf_hostile_engine.so", [compile_object(source)], [], cxx=True)

    done = run_python(_FOLDER / "hostile_engine.py", case, library)

    assert done.stdout.strip() == "survived"
