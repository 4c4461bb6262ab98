"""A file that is copied or renamed to itself stays, however careless the filesystem is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import modular_tf
from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.python_filesystem import PythonFilesystem, as_filesystem
from modular_tf.service import PluginService
from tests.filesystem.memory_store import ESSENTIAL, MemoryStore, Only
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.filesystem import Filesystem

ON_TWO = pytest.mark.parametrize("operation", ["copy_file", "rename_file"])
SPELLINGS = pytest.mark.parametrize("spelling", ["d/f", "d//f", "d/./f", "e/../d/f", "d/f/"])


def careless_service(*macros: str) -> PluginService:
    compiled = compile_object(Path(__file__).with_name("careless_plugin.c"), macros)
    service = PluginService(plugin_paths=[link_library("libcareless.so", [compiled])])
    service.load()
    return service


@pytest.fixture
def careless() -> Iterator[PluginService]:
    """A service with the careless plugin."""
    with careless_service() as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a file d/f, and a directory e."""
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"kept")
    return tmp_path


# ---- filesystems of C plugins ----


@ON_TWO
@SPELLINGS
def test_a_plugin_is_not_asked_to_do_it(
    careless: PluginService, folder: Path, operation: str, spelling: str
) -> None:
    fs = careless.filesystem("care")
    getattr(fs, operation)(f"care://{folder}/d/f", f"care://host{folder}/{spelling}")

    assert (folder / "d" / "f").read_bytes() == b"kept"


@ON_TWO
def test_two_names_are_left_to_the_plugin(
    careless: PluginService, folder: Path, operation: str
) -> None:
    fs = careless.filesystem("care")
    getattr(fs, operation)(f"care://{folder}/d/f", f"care://{folder}/d/g")

    assert (folder / "d" / "g").read_bytes() == b"kept"
    assert (folder / "d" / "f").exists() == (operation == "copy_file")


@ON_TWO
def test_what_is_not_there_is_told(careless: PluginService, folder: Path, operation: str) -> None:
    fs = careless.filesystem("care")
    with pytest.raises(NotFoundError):
        getattr(fs, operation)(f"care://{folder}/none", f"care://{folder}/./none")

    assert not (folder / "none").exists()


@ON_TWO
def test_a_directory_is_refused_as_under_another_name(
    careless: PluginService, folder: Path, operation: str
) -> None:
    fs = careless.filesystem("care")
    with pytest.raises(FailedPreconditionError, match="directory"):
        getattr(fs, operation)(f"care://{folder}/d", f"care://{folder}/d/")

    assert (folder / "d" / "f").read_bytes() == b"kept"


# ---- filesystems in Python ----


class Careless(MemoryStore):
    """As the plugin above, in memory."""

    def copy_file(self, source: str, target: str) -> None:
        """Empty the target, then read the source."""
        self.new_writable_file(target)
        content = self.files[self.enter("copy_file", source)]
        self.files[self.enter("copy_file", target)] = content

    def rename_file(self, source: str, target: str) -> None:
        """Copy, then delete."""
        self.copy_file(source, target)
        self.delete_file(source)


@pytest.fixture
def store() -> Careless:
    """A store with one file."""
    made = Careless()
    made.files["/f"] = b"kept"
    return made


@ON_TWO
@pytest.mark.parametrize("target", ["mem://h/f", "mem://h/./f", "mem://h//f", "mem://h/d/../f"])
def test_a_python_object_is_not_asked_to_do_it(
    store: Careless, operation: str, target: str
) -> None:
    fs = as_filesystem("mem", store)
    getattr(fs, operation)("mem://h/f", target)

    assert store.files == {"/f": b"kept"}


@ON_TWO
def test_a_subclass_is_not_asked_to_do_it(store: Careless, operation: str) -> None:
    class Subclass(modular_tf.Filesystem):
        stat = staticmethod(store.stat)

        def copy_file(self, source: str, target: str) -> None:
            store.copy_file(source, target)

        def rename_file(self, source: str, target: str) -> None:
            store.rename_file(source, target)

    fs: Filesystem = Subclass("mem", "subclass")
    getattr(fs, operation)("mem://h/f", "mem://h/./f")

    assert store.files == {"/f": b"kept"}


class Buckets:
    """Files by host and path; it translates no names."""

    def __init__(self) -> None:
        self.by_host: dict[str, MemoryStore] = {"one": MemoryStore(), "two": MemoryStore()}

    def __getattr__(self, operation: str):
        if operation not in ESSENTIAL:
            raise AttributeError(operation)
        return lambda uri: getattr(self.by_host[uri.split("/")[2]], operation)(uri)


@ON_TWO
def test_a_path_in_two_buckets_is_two_files(operation: str) -> None:
    buckets = Buckets()
    buckets.by_host["one"].files["/f"] = b"copied"
    fs = PythonFilesystem("mem", Only(buckets, ESSENTIAL), "buckets")
    getattr(fs, operation)("mem://one/f", "mem://two/f")

    assert buckets.by_host["two"].files == {"/f": b"copied"}
    assert ("/f" in buckets.by_host["one"].files) == (operation == "copy_file")


def test_what_is_moved_by_name_stays_readable(folder: Path) -> None:
    """The current directory is a spelling too."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with PluginService() as service:
            service.load()
            service.filesystem("").rename_file("d/f", "./d/f")
            service.filesystem("").copy_file("d/f", "d/../d/f")
    finally:
        os.chdir(before)
    assert (folder / "d" / "f").read_bytes() == b"kept"
