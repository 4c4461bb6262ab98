"""A file that is copied or renamed to itself stays, however careless the filesystem is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import modular_tf
from modular_tf import gfile
from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.python_filesystem import PythonFilesystem, as_filesystem
from modular_tf.service.service import PluginService
from tests.filesystem.careless import careless_service
from tests.filesystem.memory_store import ESSENTIAL, MemoryStore, Only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.filesystem import Filesystem

ON_TWO = pytest.mark.parametrize("operation", ["copy_file", "rename_file"])
SPELLINGS = pytest.mark.parametrize("spelling", ["d/f", "d//f", "d/./f", "e/../d/f", "d/f/"])


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


# ---- two schemes ----


def test_two_schemes_of_one_store_have_one_name_for_a_file(
    careless: PluginService, folder: Path
) -> None:
    care, less = careless.filesystem("care"), careless.filesystem("less")

    assert care.shares_store_with(less)
    copy = gfile.using(careless).copy
    copy(f"care://{folder}/d/f", f"less://{folder}/d/f", overwrite=True)
    copy(f"care://{folder}/d/f", f"less://{folder}/d", overwrite=True)
    copy(f"care://{folder}/d/f", f"less://{folder}/d/./f", overwrite=True)
    assert (folder / "d" / "f").read_bytes() == b"kept"


def test_two_schemes_that_have_a_state_each_are_compared_by_content(folder: Path) -> None:
    (folder / "d" / "link").symlink_to("f")
    (folder / "d" / "other").write_bytes(b"over")
    with careless_service("WITH_STATE") as service:
        care, less = service.filesystem("care"), service.filesystem("less")

        assert not care.shares_store_with(less)
        copy = gfile.using(service).copy
        for name in ("f", "link"):
            copy(f"care://{folder}/d/f", f"less://{folder}/d/{name}", overwrite=True)
        copy(f"care://{folder}/d/f", f"less://{folder}/d/other", overwrite=True)
    assert [(folder / "d" / name).read_bytes() for name in ("f", "other")] == [b"kept", b"kept"]


def test_filesystems_of_different_plugins_share_nothing(careless: PluginService) -> None:
    care = careless.filesystem("care")
    others = [careless.filesystem(scheme) for scheme in ("", "file", "ram")]

    assert not any(care.shares_store_with(other) for other in others)
    assert others[0].shares_store_with(others[1])
    assert not others[2].shares_store_with(others[1])


@pytest.mark.parametrize("name", ["f", "link", "hard"])
def test_the_bundled_plugin_keeps_a_file_by_all_its_names(
    careless: PluginService, folder: Path, name: str
) -> None:
    (folder / "d" / "link").symlink_to("f")
    (folder / "d" / "hard").hardlink_to(folder / "d" / "f")
    copy = gfile.using(careless).copy
    for source, target in (("f", name), (name, "f")):
        paths = f"{folder}/d/{source}", f"file://{folder}/d/{target}"
        copy(paths[0], paths[1], overwrite=True)
        copy(paths[1], paths[0], overwrite=True)

    assert (folder / "d" / "f").read_bytes() == b"kept"
    assert (folder / "d" / "link").is_symlink()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_copy_between_spellings_of_the_disk_keeps_the_rights(
    careless: PluginService, folder: Path, scheme: str
) -> None:
    source, target = folder / "d" / "f", folder / "new"
    source.chmod(0o600)
    gfile.using(careless).copy(str(source), f"{scheme}{target}")

    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"kept", 0o600)


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
