"""Memory runs out in the core, at every place once: an error comes of it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library
from tests.isolation.hostile_plugin import hostile_plugin
from tests.kernel.test_variables import build_variables

_FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def failing_allocator():
    compiled = compile_object(_FOLDER / "failing_allocator.c", (), (), ["-fno-builtin"])
    return link_library("libfailing_allocator.so", [compiled])


@pytest.mark.parametrize("part", ["filesystem", "worker", "device", "ops", "kernels"])
def test_an_allocation_that_fails_is_an_error(part, failing_allocator, fixture_plugin, run_python):
    done = run_python(
        _FOLDER / "failing_allocations.py",
        part,
        build_variables() if part == "kernels" else fixture_plugin("good"),
        env={"LD_PRELOAD": str(failing_allocator)},
    )

    assert int(done.stdout) >= 8


def test_an_allocation_that_fails_in_a_worker_ends_no_process(failing_allocator, run_python):
    code = """
        import sys
        from modular_tf.errors import ModularTFError
        from tests.isolation.conftest import isolated

        with isolated(sys.argv[1], bundled=False) as service:
            fs = service.filesystem("hostile")
            fs.new_writable_file("hostile://h/data").close()
            for call in (fs.new_writable_file, fs.new_random_access_file, fs.stat, fs.get_children):
                for uri in ("hostile://h/data", "hostile://h/" + "x" * 5000):
                    fs.path_exists("hostile://h/deed/fail-next-allocation")
                    try:
                        call(uri)
                    except ModularTFError as error:
                        print(type(error).__name__)
            print(service.workers()[0].restarts)
    """
    done = run_python(code, hostile_plugin(), env={"LD_PRELOAD": str(failing_allocator)})

    *errors, restarts = done.stdout.split()
    assert "ResourceExhaustedError" in errors
    assert restarts == "0"
