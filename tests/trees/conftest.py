"""A store for each test of trees, by the parameter `store`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trees.stores import Stores, TreeStore, running_stores

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Every store, started when it is first needed."""
    with running_stores(tmp_path_factory.mktemp("trees")) as stores:
        yield stores


@pytest.fixture
def store(request: pytest.FixtureRequest, stores: Stores) -> TreeStore:
    """The store that a test names, with an empty directory."""
    made: TreeStore = stores.make(request.param)
    return made


@pytest.fixture
def disk(stores: Stores, store: TreeStore) -> TreeStore:
    """An empty directory of the disk beside that store."""
    return stores.beside(store)


@pytest.fixture
def python(stores: Stores, store: TreeStore) -> TreeStore:
    """An empty directory of the filesystem in Python beside that store."""
    return stores.beside(store, "python")
