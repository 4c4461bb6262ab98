"""What all tests of the bridge into TensorFlow share: one process that has imported it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.children import describe
from tests.fixtures.tensorflow import environment_of_tensorflow, tensorflow_folder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.forked_children import ForkServer


_BRIDGE = """
import json, os, signal, sys, threading, time
import tensorflow as tf
import modular_tf as mtf
import modular_tf.tensorflow as mtft

g = tf.io.gfile

def started(schemes=(), **options):
    service = mtf.PluginService(**options)
    service.load()
    if schemes:
        mtft.register(schemes, service=service)
    return service

def error_of(call):
    try:
        return f"nothing: {call()!r}"
    except tf.errors.OpError as error:
        return f"{type(error).__name__}: {error.message}"
"""


def linked_site(folder: Path) -> Path:
    """Return a folder `site-packages` that has TensorFlow, and an empty `tensorflow-plugins`."""
    site = folder / "site-packages"
    site.mkdir(parents=True)
    for entry in tensorflow_folder().iterdir():
        (site / entry.name).symlink_to(entry)
    (site / "tensorflow-plugins").mkdir()
    return site


@pytest.fixture(scope="session")
def tensorflow_site(tmp_path_factory) -> Path:
    """The folder `site-packages` that the process of the tests imports TensorFlow from."""
    return linked_site(tmp_path_factory.mktemp("tensorflow"))


@pytest.fixture(scope="session")
def tensorflow_environment(tensorflow_site: Path) -> dict[str, str]:
    """The variables of a process that imports TensorFlow."""
    path = filter(None, [str(tensorflow_site), os.environ.get("PYTHONPATH")])
    of_process = {"PYTHONPATH": os.pathsep.join(path), "OPENBLAS_NUM_THREADS": "1"}
    return {**environment_of_tensorflow(), **of_process}


@pytest.fixture(scope="session")
def tensorflow(fork_server, tensorflow_environment: dict[str, str]) -> ForkServer:
    """The process that has imported TensorFlow; no thread runs in it."""
    return fork_server("import tensorflow", tensorflow_environment)


@pytest.fixture
def run_tensorflow(tensorflow: ForkServer, tmp_path: Path):
    """Return what runs source text, or a script, with TensorFlow; it must end with status 0."""

    def run(program, *arguments, env=None):
        code = program if isinstance(program, str) else program.read_text("utf-8")
        environment = {**environment_of_tensorflow(), **(env or {})}
        done = tensorflow.run(
            code, *arguments, folder=tmp_path, environment=environment, timeout=240
        )
        assert done.returncode == 0, describe(done)
        return done

    return run


@pytest.fixture
def run_bridge(run_tensorflow):
    """Return what runs source text with the bridge imported, services and errors at hand."""
    return lambda code, *arguments, env=None: run_tensorflow(_BRIDGE + code, *arguments, env=env)
