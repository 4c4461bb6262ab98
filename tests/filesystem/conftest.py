"""Services with the bundled plugins, and a folder of each of their filesystems."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

import pytest

from modular_tf.service.service import PluginService
from tests.filesystem.ended_child import BEGIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from modular_tf.filesystem.filesystem import Filesystem


class Place(NamedTuple):
    """A filesystem, and the URI of an empty directory in it."""

    fs: Filesystem
    root: str

    def __truediv__(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> str:
        """Make a file; return its URI."""
        uri = self / name
        with self.fs.new_writable_file(uri) as file:
            file.append(data)
        return uri

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        with self.fs.new_random_access_file(self / name) as file:
            return file.read(0, 1 << 24)


@pytest.fixture
def service() -> Iterator[PluginService]:
    """A service with the bundled plugins only."""
    with PluginService() as made:
        made.load()
        yield made


@pytest.fixture(params=["ram", "file", ""])
def place(request: pytest.FixtureRequest, service: PluginService, tmp_path: Path) -> Place:
    """An empty directory in memory, on disk by URI, and on disk by plain path."""
    root = f"ram://{uuid.uuid4().hex}" if request.param == "ram" else str(tmp_path / "root")
    if request.param == "file":
        root = f"file://{root}"
    filesystem = service.filesystem(request.param)
    filesystem.recursively_create_dir(root)
    return Place(filesystem, root)


@pytest.fixture
def ledger(fixture_plugin, plugin_report, run_python):
    """Run code in a child with the fixture plugin; return what the plugin counted."""

    def run(code, variant="good"):
        run_python(BEGIN + code, fixture_plugin(variant), env=plugin_report.environment)
        counted = plugin_report.last()
        assert counted["bad_frees"] == 0
        assert counted["allocated"] == counted["freed"]
        return counted

    return run
