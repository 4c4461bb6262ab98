"""How a test of a real plugin runs its subject."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.fixtures.children import PythonRunner
    from tests.fixtures.emulators import Store
    from tests.fixtures.wild import WildPlugins

PRELUDE = Path(__file__).with_name("prelude.py").read_text()
STORES = {
    "s3": "s3_store",
    "az": "azure_store",
    "gs": "gcs_store",
    "oss": "oss_store",
    "http": "http_store",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect, visibly, what needs an interpreter with TensorFlow where none is named."""
    if os.environ.get("MODULAR_TF_TENSORFLOW_PYTHON"):
        return
    left_out = [item for item in items if item.get_closest_marker("tensorflow")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


class SubjectRunner(Protocol):
    """Runs code against a store; see `prelude.py` for the names that it finds."""

    def __call__(
        self,
        store: Store,
        code: str,
        *arguments: str | Path,
        folder: str = "",
        without: str = "",
        env: dict[str, str] | None = None,
        timeout: float = 60,
        status: int | None = 0,
    ) -> subprocess.CompletedProcess[str]:
        """Return the finished child.

        Args:
            store: Where `uri("x")` lies.
            code: The subject, dedented.
            *arguments: `sys.argv[1:]` of the child.
            folder: A folder of the store for this test alone.
            without: Names of workarounds to leave out, with commas between.
            env: More variables.
            timeout: Seconds until the test fails.
            status: What the child must exit with; None for anything.
        """


@pytest.fixture
def wild_environment(wild_plugins: WildPlugins):
    """Return the environment of a child that uses a store."""

    def environment(store: Store, folder: str = "") -> dict[str, str]:
        library = wild_plugins.gcs_library if "gs:" in store.base_uri else wild_plugins.io_library
        base = f"{store.base_uri}/{folder}" if folder else store.base_uri
        return {**store.environment, "WILD_PLUGIN": str(library), "WILD_BASE": base}

    return environment


@pytest.fixture
def run_subject(run_python: PythonRunner, wild_environment) -> SubjectRunner:
    """Run code with a real plugin in a child process; see `SubjectRunner`."""

    def run(store, code, *arguments, folder="", without="", env=None, timeout=60, status=0):
        settings = {**wild_environment(store, folder), "WILD_WITHOUT": without, **(env or {})}
        if status:  # a plugin that ended three processes would be quarantined for all other tests
            settings["MODULAR_TF_TELL_ENDED_CALLS"] = "0"
        subject = f"{PRELUDE}\n{dedent(code)}"
        return run_python(subject, *arguments, env=settings, timeout=timeout, status=status)

    return run


@pytest.fixture(params=["s3", "az", "gs", "oss"])
def object_store(request: pytest.FixtureRequest) -> Store:
    """Each store that can be written to."""
    store: Store = request.getfixturevalue(STORES[request.param])
    return store
