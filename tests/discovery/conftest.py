"""Libraries compiled for one test, and search paths that see nothing but what a test names."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from modular_tf.discovery.candidate import Candidate, Source
from modular_tf.discovery.linking.host_exports import HostExports
from modular_tf.discovery.probe import Prober
from tests.fixtures.compiler import object_of_text
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

FILESYSTEM = "void TF_InitPlugin(void *info) { (void)info; }\n"
DEVICE = "void SE_InitPlugin(void *params, void *status) { (void)params; (void)status; }\n"


def compile_into(folder, name, source=FILESYSTEM, *options):
    """Compile C to a shared library; options follow the source on the command line."""
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    linker = shlex.split(DEVELOPER_ENVIRONMENT.get("CC", "cc"))
    command = [*linker, "-shared", "-o", str(target), str(object_of_text(source)), *options]
    done = subprocess.run(
        command, text=True, capture_output=True, check=False, env=dict(DEVELOPER_ENVIRONMENT)
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def compile_library(tmp_path):
    """Compile C to `tmp_path/name`; options follow the source on the command line."""
    return lambda name, *source_and_options: compile_into(tmp_path, name, *source_and_options)


def make_candidate(path, source=Source.ARGUMENT, *, distribution=None):
    """Return a file as a search would find it."""
    text = os.fspath(path)
    found = Path(text).stat() if Path(text).exists() else None
    return Candidate(
        path=text,
        real_path=os.path.realpath(text),
        source=source,
        origin="test",
        distribution=distribution,
        identity=(found.st_dev, found.st_ino) if found else (0, 0),
        name=Path(text).name,
    )


@pytest.fixture
def prober():
    """Probe with a host that stands in for TensorFlow's libraries and has no symbols."""
    with Prober(HostExports(), environment={}) as prober:
        yield prober


def rules_of(probe):
    """Return the rules that a library breaks."""
    return [problem.rule for problem in probe.problems]


def found(result):
    """Return path and source of each candidate."""
    return [(candidate.path, candidate.source) for candidate in result.candidates]
