"""Compile the subjects against the built host runtime and run them in child processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from modular_tf.native import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PACKAGE = Path(__file__).parents[2] / "modular_tf"  # an installed one has no sources
SOURCES = PACKAGE / "native" / "host_runtime"
CORE = PACKAGE / "native" / "core"
SUBJECTS = Path(__file__).parent / "subjects"
RUNTIME = Path(_core.__file__).parent / "lib" / "libmodular_tf_framework.so.2"
COMMON = ["-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread"]
INCLUDES = [f"-I{PACKAGE / 'include'}", f"-I{SOURCES}", f"-I{CORE}", f"-I{SUBJECTS}"]
EXTRA_SOURCES = {
    "threads": [SOURCES / "numa_affinity.c"],
    "calls_under_way": [
        SOURCES / "kernels" / "misuse.cc",
        CORE / "fork_lock.cc",
    ],
}


class CaseRunner(Protocol):
    """Runs one case of a subject in a child process, in an empty directory."""

    def __call__(
        self, subject: str, case: str, *, env: Mapping[str, str] | None = None, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Return the child, whose exit status was `status` (-N for signal N)."""


def run_checked(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a tool that has to succeed."""
    done = subprocess.run(command, text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def runtime() -> Path:
    """Return the built host runtime."""
    assert RUNTIME.is_file(), f"{RUNTIME} is missing; install the package first"
    return RUNTIME


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles and links sources of one language, strictly."""
    folder = tmp_path_factory.mktemp("compiled")

    def compile_(name: str, sources: list[Path], *options: str) -> Path:
        is_cpp = sources[0].suffix == ".cc"
        driver = ["c++", "-std=c++17"] if is_cpp else ["cc", "-std=c11"]
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        files = [str(source) for source in sources]
        run_checked([*driver, *COMMON, *INCLUDES, *files, "-o", str(target), *options])
        return target

    return compile_


@pytest.fixture(scope="session")
def subject_program(runtime: Path, compile_c: Callable[..., Path]) -> Callable[[str], Path]:
    """Return a function that builds a subject, once, linked to the runtime."""
    built: dict[str, Path] = {}

    def program(name: str) -> Path:
        if name not in built:
            source = next(SUBJECTS.glob(f"{name}.c*"))
            extra = EXTRA_SOURCES.get(name, [])
            link = [str(runtime), f"-Wl,-rpath,{runtime.parent}"]
            built[name] = compile_c(f"{name}_subject", [source, *extra], *link)
        return built[name]

    return program


@pytest.fixture
def run_case(subject_program: Callable[[str], Path], tmp_path: Path) -> CaseRunner:
    """Return a function that runs one case of a subject."""

    def run(
        subject: str, case: str, *, env: Mapping[str, str] | None = None, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_CPP_")}
        child = subprocess.run(
            [str(subject_program(subject)), case],
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
