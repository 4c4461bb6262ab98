"""Memory runs out in the core, at every place once: an error comes of it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library
from tests.kernel.test_variables import build_variables

_FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def failing_allocator():
    compiled = compile_object(_FOLDER / "failing_allocator.c", (), (), ["-fno-builtin"])
    return link_library("libfailing_allocator.so", [compiled])


@pytest.mark.parametrize("part", ["filesystem", "worker", "device", "library", "ops", "kernels"])
def test_an_allocation_that_fails_is_an_error(part, failing_allocator, fixture_plugin, run_python):
    done = run_python(
        _FOLDER / "failing_allocations.py",
        part,
        build_variables() if part == "kernels" else fixture_plugin("good"),
        env={"LD_PRELOAD": str(failing_allocator)},
    )

    assert int(done.stdout) >= (5 if part == "library" else 8)
