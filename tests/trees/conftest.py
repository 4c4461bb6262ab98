"""A store for each test of trees, by the parameter `store`."""

import pytest

from tests.trees.stores import running_stores


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Every store, started when it is first needed."""
    with running_stores(tmp_path_factory.mktemp("trees")) as stores:
        yield stores


@pytest.fixture
def store(request, stores):
    """The store that a test names, with an empty directory."""
    return stores.make(request.param)


@pytest.fixture
def disk(stores, store):
    """An empty directory of the disk beside that store."""
    return stores.beside(store)


@pytest.fixture
def python(stores, store):
    """An empty directory of the filesystem in Python beside that store."""
    return stores.beside(store, "python")
