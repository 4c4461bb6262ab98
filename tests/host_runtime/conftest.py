"""Compile the subjects against the built host runtime and run them in child processes."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from modular_tf.native import _core
from tests.fixtures.compiler import compile_object, link_program

SUBJECTS = Path(__file__).parent / "subjects"
RUNTIME = Path(_core.__file__).parent / "lib" / "libmodular_tf_framework.so.2"
_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"  # an installed one has no sources
_SOURCES, _CORE = _NATIVE / "host_runtime", _NATIVE / "core"
_EXTRA_SOURCES = {
    "threads": [_SOURCES / "numa_affinity.c"],
    "calls_under_way": [_SOURCES / "kernels" / "misuse.cc", _CORE / "fork_lock.cc"],
}


def compiled(source):
    """Compile a source that may include the headers of the runtime and the core."""
    options = ["-fvisibility=default", "-pthread"]
    return compile_object(source, ["_GNU_SOURCE"], [SUBJECTS, _SOURCES, _CORE], options)


@cache
def subject_program(name):
    """Return a subject, linked to the runtime."""
    source = next(SUBJECTS.glob(f"{name}.c*"))
    objects = [compiled(each) for each in (source, *_EXTRA_SOURCES.get(name, []))]
    link = [str(RUNTIME), f"-Wl,-rpath,{RUNTIME.parent}", "-pthread"]
    return link_program(f"{name}_subject", objects, link)


@pytest.fixture
def run_case(tmp_path):
    """Return a function that runs one case of a subject in an empty folder, to its status."""

    def run(subject, case, *, env=None, status=0):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_CPP_")}
        child = subprocess.run(
            [subject_program(subject), case],
            cwd=tmp_path,
            env={**clean, **(env or {})},
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert child.returncode == status, f"{child.stdout}\n{child.stderr}"
        return child

    return run
