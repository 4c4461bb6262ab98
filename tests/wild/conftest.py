"""How a test of a real plugin runs its subject."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.emulators import ControlledStore

if TYPE_CHECKING:
    from collections.abc import Mapping

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


@pytest.fixture
def wild_environment(wild_plugins: WildPlugins):
    """Return the environment of a child that uses a store."""

    def environment(store: Store, folder: str = "") -> dict[str, str]:
        library = wild_plugins.gcs_library if "gs:" in store.base_uri else wild_plugins.io_library
        base = f"{store.base_uri}/{folder}" if folder else store.base_uri
        control = {"WILD_CONTROL": store.endpoint} if isinstance(store, ControlledStore) else {}
        return {**store.environment, **control, "WILD_PLUGIN": str(library), "WILD_BASE": base}

    return environment


@pytest.fixture
def run_subject(run_forked, wild_environment):
    """Return what runs code with a real plugin in a child; see `prelude.py` for what it finds.

    Args:
        store: Where `uri("x")` lies.
        code: The subject, dedented; or such by the name of a folder, one after the other.
        *arguments: `sys.argv[1:]` of the child.
        folder: A folder of the store for this test alone.
        without: Names of workarounds to leave out, with commas between.
        env: More variables.
        timeout: Seconds until the test fails.
        status: What the child must exit with; None for anything.
        run_child: Another way to run it than in a fork, where the start of a process matters.
    """

    def run(
        store, code, *arguments, folder="", without="", env=None, timeout=120, status=0,
        run_child=run_forked,
    ):  # fmt: skip
        settings = {**wild_environment(store, folder), "WILD_WITHOUT": without, **(env or {})}
        if status:  # a plugin that ended three processes would be quarantined for all other tests
            settings["MODULAR_TF_REPORT_ENDED_CALLS"] = "0"
        parts = code if isinstance(code, dict) else {"": code}
        subject = "\n".join([PRELUDE, *(f"enter({n!r})\n{dedent(c)}" for n, c in parts.items())])
        return run_child(subject, *arguments, env=settings, timeout=timeout, status=status)

    return run


@pytest.fixture
def run_fs(run_forked, wild_plugins: WildPlugins):
    """Return what runs `modular-tf fs ...`, which finds the plugins among installed packages."""

    def run(store, words, places: Mapping[str, object] | None = None, status: int | None = 0):
        words = words if isinstance(words, list) else shlex.split(words)
        arguments = [str((places or {}).get(word, word)) for word in words]
        path = filter(None, [os.environ.get("PYTHONPATH"), str(wild_plugins.site_dir)])
        environment = {**store.environment, "PYTHONPATH": os.pathsep.join(path)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        return run_forked(code, "fs", *arguments, env=environment, status=status)

    return run


@pytest.fixture(params=["s3", "az", "gs", "oss"])
def object_store(request: pytest.FixtureRequest) -> Store:
    """Each store that can be written to."""
    store: Store = request.getfixturevalue(STORES[request.param])
    return store
