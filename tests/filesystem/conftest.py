"""Services with the bundled plugins, a folder of their filesystems, and stores in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem


class Place(NamedTuple):
    """A filesystem, and the URI of an empty directory in it."""

    fs: Filesystem
    root: str

    def __truediv__(self, name):
        return f"{self.root}/{name}"

    def write(self, name, data):
        """Make a file; return its URI."""
        with self.fs.new_writable_file(self / name) as file:
            file.append(data)
        return self / name

    def read(self, name):
        """Return a file's bytes."""
        with self.fs.new_random_access_file(self / name) as file:
            return file.read(0, 1 << 24)


@pytest.fixture(scope="package")
def service():
    """A service with the bundled plugins, which stays as it is."""
    with PluginService() as made:
        made.load()
        yield made


@pytest.fixture
def own_service():
    """A service with the bundled plugins, for one test that changes or closes it."""
    with PluginService() as made:
        made.load()
        yield made


@pytest.fixture
def place(service, tmp_path):
    """An empty directory on disk."""
    filesystem, root = service.filesystem("file"), f"file://{tmp_path}/root"
    filesystem.recursively_create_dir(root)
    return Place(filesystem, root)


@pytest.fixture
def store():
    """A store in memory that notes its calls."""
    return MemoryStore()


@pytest.fixture
def fs(store):
    """The filesystem of `store`, for which the host does all that has a default."""
    return filesystem_of(store)
