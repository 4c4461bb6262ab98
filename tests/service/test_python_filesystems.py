"""Filesystems that Python code registers: they serve, give way and end like those of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
    UnknownError,
)
from modular_tf.filesystem.files import FileStatistics
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.gfile import GFile
from modular_tf.service.report import State
from tests.filesystem.memory_store import MemoryStore


def test_an_object_with_some_operations_serves_with_the_hosts_defaults(make_service):
    service = make_service()
    store = MemoryStore()
    service.register_filesystem("mem", store)
    fs = service.filesystem("mem")
    fs.recursively_create_dir("mem://h/a/b")
    with fs.open("mem://h/a/b/f", "w") as file:
        file.write("x")
    fs.rename_file("mem://h/a/b/f", "mem://h/g")

    assert store.files == {"/g": b"x"}
    assert fs.get_matching_paths("mem://h/*") == ["mem://h/a", "mem://h/g"]
    with pytest.raises(UnimplementedError, match="new_appendable_file"):
        fs.new_appendable_file("mem://h/g")
    (record,) = service.plugins()
    assert (record.name, record.source, record.schemes) == ("MemoryStore", "python", ("mem",))


class ForeignFile:
    """A file with the methods alone that its filesystem's users must have."""

    def __init__(self, files, uri):
        self._files, self._uri, self._data = files, uri, b""

    def readinto(self, offset, buffer):
        data = self._files[self._uri][offset : offset + len(buffer)]
        buffer[: len(data)] = data
        return len(data)

    def append(self, data):
        self._data += bytes(data)

    def tell(self):
        return len(self._data)

    def close(self):
        if self._data:
            self._files[self._uri] = self._data


class AbortedFile(ForeignFile):
    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()


def foreign_filesystem(base, *arguments, file=ForeignFile):
    class Foreign(base):
        def __init__(self):
            super().__init__(*arguments)
            self.files = {}

        def new_random_access_file(self, uri):
            return file(self.files, uri)

        def new_writable_file(self, uri):
            return file(self.files, uri)

        def path_exists(self, uri):
            return uri in self.files

        def stat(self, uri):
            if uri not in self.files:
                raise NotFoundError(uri)
            return FileStatistics(len(self.files[uri]), 0, is_directory=False)

    return Foreign()


@pytest.mark.parametrize("base", [(object,), (Filesystem, "foreign", "ours")])
def test_files_of_any_class_are_read_written_and_copied(base, make_service):
    service = make_service()
    service.register_filesystem("foreign", foreign_filesystem(*base))
    fs = service.filesystem("foreign")
    with fs.open("foreign://h/a", "wb") as file:
        file.write(b"content")
    with GFile("foreign://h/a", "rb", service=service) as file:
        assert file.read() == b"content"
    fs.copy_file("foreign://h/a", "foreign://h/b")
    assert fs.read_file("foreign://h/b") == b"content"


def test_the_with_block_of_a_file_of_any_class_is_its_own(make_service):
    service, foreign = make_service(), foreign_filesystem(object, file=AbortedFile)
    foreign.files["foreign://h/a"] = b"before"
    service.register_filesystem("foreign", foreign)
    file = service.filesystem("foreign").new_writable_file("foreign://h/a")
    file.append(b"half")
    with pytest.raises(KeyError), file:
        raise KeyError
    assert foreign.files == {"foreign://h/a": b"before"}


def test_errors_of_python_become_typed(make_service):
    class Failing:
        def stat(self, uri):
            raise {"missing": FileNotFoundError, "denied": PermissionError}.get(uri, KeyError)(uri)

    service = make_service()
    service.register_filesystem("mem", Failing())
    fs = service.filesystem("mem")
    for uri, error in (("missing", FileNotFoundError), ("denied", PermissionError)):
        with pytest.raises(error) as failure:
            fs.stat(uri)
        assert (failure.value.plugin, failure.value.path) == ("Failing", uri)
        assert failure.value.operation == "stat"
    with pytest.raises(UnknownError):
        fs.stat("other")


def test_what_is_no_filesystem_is_refused(make_service):
    service = make_service()
    accepted = "fsspec, a pyarrow.fs.FileSystem, a store of obstore, or an object with operations"
    given = (object(), None, 5, "text", {"key": "secret"}, Path("folder"), MemoryStore)
    for wrong in given:
        with pytest.raises(TypeError, match=f"scheme 'mem': .*{accepted}.*found ") as failure:
            service.register_filesystem("mem", wrong)
        assert "secret" not in str(failure.value)
    for scheme in ("m", "m-m", "9m", "m://", " mem"):
        with pytest.raises(InvalidArgumentError, match="FS-007"):
            service.register_filesystem(scheme, MemoryStore())
    assert service.plugins() == []
    assert service.schemes() == {}


# ---- Taking and giving back ----


def test_a_taken_scheme_is_refused_unless_it_is_replaced_and_undoing_gives_it_back(make_service):
    service = make_service(bundled=True)
    service.load()
    with pytest.raises(AlreadyExistsError, match=r"MemoryStore.*ram_filesystem") as failure:
        service.register_filesystem("ram", MemoryStore())
    assert failure.value.rule == "FS-018"
    before = service.filesystem("ram")
    undo = service.register_filesystem("ram", MemoryStore(), replace=True)
    loser = service.report()["ram_filesystem"]

    assert service.schemes()["ram"] == "MemoryStore"
    assert (loser.state, loser.schemes, loser.reason.rule) == (State.SHADOWED, (), "FS-018")
    assert "MemoryStore" in loser.reason.message
    before.recursively_create_dir("ram://still/works")
    undo()
    assert service.filesystem("ram") is before
    assert service.report()["ram_filesystem"].state is State.LOADED
    assert "MemoryStore" not in [record.name for record in service.plugins()]


def test_registrations_are_undone_in_any_order(make_service):
    service = make_service()
    undo_one = service.register_filesystem("mem", MemoryStore())
    undo_two = service.register_filesystem("mem", MemoryStore(), replace=True)
    undo_three = service.register_filesystem("mem", MemoryStore(), replace=True)
    assert service.schemes() == {"mem": "MemoryStore#3"}
    assert [record.state.value for record in service.plugins()] == [
        "shadowed",
        "shadowed",
        "loaded",
    ]
    undo_two()
    assert service.schemes() == {"mem": "MemoryStore#3"}
    undo_three()
    undo_three()
    assert service.schemes() == {"mem": "MemoryStore"}
    undo_one()
    assert service.schemes() == {}
    assert service.plugins() == []


def test_a_closed_service_leaves_the_object_alone(make_service):
    class Store(MemoryStore):
        closed = False

        def close(self):
            self.closed = True

    store = Store()
    service = make_service()
    service.register_filesystem("mem", store)
    service.close()

    assert not store.closed
    with pytest.raises(ClosedError):
        service.filesystem("mem")
