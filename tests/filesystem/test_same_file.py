"""A file that is copied or renamed to itself stays, however careless the filesystem is."""

from __future__ import annotations

import pytest

import modular_tf
from modular_tf import gfile
from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.python_filesystem import as_filesystem
from modular_tf.filesystem.uri import parse_uri
from tests.filesystem.careless import careless_service
from tests.filesystem.memory_store import MemoryStore, filesystem_of

ON_TWO = pytest.mark.parametrize("operation", ["copy_file", "rename_file"])


@pytest.fixture(scope="module")
def careless():
    """A service with the careless plugin, and the bundled ones."""
    with careless_service() as service:
        yield service


@pytest.fixture
def care(careless):
    return careless.filesystem("care")


@pytest.fixture
def folder(tmp_path):
    """A directory with a file d/f and a link to it, and a directory e."""
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"kept")
    (tmp_path / "d" / "link").symlink_to("f")
    return tmp_path


# ---- one file ----


class Careless(MemoryStore):
    """As the careless plugin, in memory."""

    def copy_file(self, source, target):
        """Empty the target, then read the source."""
        self.new_writable_file(target)
        content = self.files[self.enter("copy_file", source)]
        self.files[self.enter("copy_file", target)] = content

    def rename_file(self, source, target):
        self.copy_file(source, target)
        self.delete_file(source)


def subclass_of(store):
    class Subclass(modular_tf.Filesystem):
        stat = staticmethod(store.stat)

        def copy_file(self, source, target):
            store.copy_file(source, target)

        def rename_file(self, source, target):
            store.rename_file(source, target)

    return Subclass("mem", "subclass")


PLACES = {
    "of a plugin": lambda store, care, top: (care, f"care://{top}", f"care://host{top}"),
    "of an object": lambda store, *_: (as_filesystem("mem", store), "mem://h", "mem://h"),
    "a subclass": lambda store, *_: (subclass_of(store), "mem://h", "mem://h"),
    "with the host's copy": lambda store, *_: (filesystem_of(store), "mem://h", "mem://h"),
}


@ON_TWO
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spelling", ["d/f", "d//f", "d/./f", "e/../d/f"])
def test_a_filesystem_is_not_asked_to_do_it(care, folder, operation, place, spelling):
    store = Careless()
    store.dirs.add("/d")
    store.files["/d/f"] = b"kept"
    fs, here, there = PLACES[place](store, care, folder)
    getattr(fs, operation)(f"{here}/d/f", f"{there}/{spelling}")

    assert (folder / "d" / "f").read_bytes() == b"kept"
    assert store.files == {"/d/f": b"kept"}
    assert "new_writable_file" not in [operation for operation, *_ in store.calls]


@ON_TWO
@pytest.mark.parametrize(
    ("source", "target", "error"),
    [("none", "./none", NotFoundError), ("d", "d/", FailedPreconditionError)],
)
def test_what_is_no_file_is_refused_as_under_another_name(
    care, folder, operation, source, target, error
):
    with pytest.raises(error):
        getattr(care, operation)(f"care://{folder}/{source}", f"care://{folder}/{target}")

    assert not (folder / "none").exists()
    assert (folder / "d" / "f").read_bytes() == b"kept"


# ---- two schemes ----


def test_two_schemes_of_one_store_have_one_name_for_a_file(careless, care, folder):
    assert care.shares_store_with(careless.filesystem("less"))
    for target in ("d/f", "d", "d/./f"):
        gfile.using(careless).copy(f"care://{folder}/d/f", f"less://{folder}/{target}", True)
    assert (folder / "d" / "f").read_bytes() == b"kept"


def test_two_schemes_that_have_a_state_each_are_compared_by_content(folder):
    (folder / "d" / "other").write_bytes(b"over")
    with careless_service("WITH_STATE") as service:
        care, less = service.filesystem("care"), service.filesystem("less")

        assert not care.shares_store_with(less)
        for name in ("f", "link", "other"):
            gfile.using(service).copy(f"care://{folder}/d/f", f"less://{folder}/d/{name}", True)
    assert [(folder / "d" / name).read_bytes() for name in ("f", "other")] == [b"kept", b"kept"]


@ON_TWO
def test_the_current_directory_is_a_spelling_too(service, folder, operation, monkeypatch):
    monkeypatch.chdir(folder)
    for target in ("./d/f", "d/../d/f"):
        getattr(service.filesystem(""), operation)("d/f", target)

    assert (folder / "d" / "f").read_bytes() == b"kept"


def test_a_copy_into_its_own_directory_changes_nothing(store, fs):
    store.files["/f"] = b"kept"
    fs.copy_file("mem://h/f", "mem://h/")

    assert store.files == {"/f": b"kept"}


class Buckets(MemoryStore):
    """Files by host and path; it translates no names."""

    def enter(self, operation, uri):
        path = super().enter(operation, uri)
        return f"/{host}{path}" if (host := parse_uri(uri).host) else path


@ON_TWO
def test_a_path_in_two_buckets_is_two_files(operation):
    store = Buckets()
    store.dirs |= {"/one", "/two"}
    store.files["/one/f"] = b"copied"
    getattr(filesystem_of(store), operation)("mem://one/f", "mem://two/f")

    assert store.files["/two/f"] == b"copied"
    assert ("/one/f" in store.files) == (operation == "copy_file")
