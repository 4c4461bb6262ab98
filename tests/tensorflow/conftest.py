"""What all tests of the bridge into TensorFlow share: one process that has imported it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.children import describe
from tests.fixtures.forks import ForkServer, fork_server
from tests.fixtures.tensorflow import environment_of_tensorflow, tensorflow_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
def tensorflow(tensorflow_site: Path) -> Iterator[ForkServer]:
    """The process that has imported TensorFlow."""
    path = filter(None, [str(tensorflow_site), os.environ.get("PYTHONPATH")])
    environment = {
        **os.environ,
        **environment_of_tensorflow(),
        "PYTHONPATH": os.pathsep.join(path),
        "OPENBLAS_NUM_THREADS": "1",  # else numpy starts threads
    }
    with fork_server(["tensorflow"], environment) as found:
        yield found


@pytest.fixture
def run_tensorflow(tensorflow: ForkServer, tmp_path: Path):
    """Return what runs a program with TensorFlow, which must end with status 0."""

    def run(program, *arguments, env=None):
        env = {**environment_of_tensorflow(), **(env or {})}
        done = tensorflow.run(program, *arguments, folder=tmp_path, env=env)
        assert done.returncode == 0, describe(done)
        return done

    return run
