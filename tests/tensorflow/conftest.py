"""What all tests of the bridge into TensorFlow share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.fixtures.tensorflow import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fixtures.children import PythonRunner

ACTIONS = Path(__file__).with_name("actions.py")
READING = Path(__file__).with_name("reading_actions.py")


class ActionRunner(Protocol):
    """Performs the actions of `actions.py` on a folder, in a child process."""

    def __call__(self, setup: str, root: str, env: Mapping[str, str] | None = None) -> Any:
        """Return what came of each action, by its name.

        Args:
            setup: Source text that registers the scheme; it finds `mtf`, `mtft` and `tf`.
            root: A folder of that scheme.
            env: More variables.
        """


@pytest.fixture
def perform(run_python: PythonRunner, tensorflow_environment: dict[str, str]) -> ActionRunner:
    """Return what performs the actions; see `ActionRunner`."""

    def run(setup: str, root: str, env: Mapping[str, str] | None = None) -> Any:
        environment = {**tensorflow_environment, **(env or {})}
        done = run_python(ACTIONS, setup, root, env=environment, timeout=240)
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture
def read(run_python: PythonRunner, tensorflow_environment: dict[str, str]) -> Any:
    """Return what performs `reading_actions.py` and returns what came of each."""

    def run(setup: str, folder: Path, root: str, env: Mapping[str, str] | None = None) -> Any:
        environment = {**tensorflow_environment, **(env or {})}
        done = run_python(READING, setup, folder, root, env=environment, timeout=240)
        return json.loads(done.stdout.splitlines()[-1])

    return run
