"""Libraries compiled for one test, and search paths that see nothing but what a test names."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from modular_tf.discovery.candidate import Candidate, Source
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILESYSTEM = "void TF_InitPlugin(void *info) { (void)info; }\n"
DEVICE = "void SE_InitPlugin(void *params, void *status) { (void)params; (void)status; }\n"


class LibraryCompiler(Protocol):
    """Compiles one C source to a shared library."""

    def __call__(self, name: str, source: str = FILESYSTEM, *options: str) -> Path: ...


@pytest.fixture
def compile_library(tmp_path: Path) -> LibraryCompiler:
    """Compile C to `tmp_path/name`; options follow the source on the command line."""

    def compile_one(name: str, source: str = FILESYSTEM, *options: str) -> Path:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(DEVELOPER_ENVIRONMENT.get("CC", "cc"))
        command = [*compiler, "-shared", "-fPIC", "-o", str(target), "-x", "c", "-", "-x", "none"]
        done = subprocess.run(
            [*command, *options],
            input=source,
            text=True,
            capture_output=True,
            check=False,
            env=dict(DEVELOPER_ENVIRONMENT),
        )
        assert done.returncode == 0, done.stderr
        return target

    return compile_one


def make_candidate(path: Path | str) -> Candidate:
    """Return a candidate for a path, as if the caller had named it."""
    text = os.fspath(path)
    return Candidate(
        path=text,
        real_path=os.path.realpath(text),
        source=Source.ARGUMENT,
        origin="argument",
        distribution=None,
        identity=(0, 0),
        name=Path(text).name,
    )


@pytest.fixture
def candidate() -> Callable[[Path | str], Candidate]:
    """Make a candidate for a path."""
    return make_candidate


@pytest.fixture
def prober() -> Iterator[Prober]:
    """Probe with a host that stands in for TensorFlow's libraries and has no symbols."""
    with Prober(HostExports(), environment={}) as prober:
        yield prober
