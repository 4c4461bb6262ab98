"""The functions on filesystems that count, fail or lie, and on the default service."""

from functools import partial

import pytest

import modular_tf
from modular_tf import gfile
from modular_tf.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from modular_tf.filesystem.files import DeletedCounts
from modular_tf.filesystem.filesystem import Filesystem


class Scripted(Filesystem):
    """Answers operations as it is told, and remembers what it was asked."""

    def __init__(self, **answers):
        super().__init__("zz", "scripted")
        self.asked = []
        for operation, answer in answers.items():
            setattr(self, operation, partial(self._answer, operation, answer))

    def _answer(self, operation, answer, *_uris):
        self.asked.append(operation)
        if isinstance(answer, Exception):
            raise answer
        return answer


class OneFilesystem:
    """A service with nothing but one filesystem."""

    def __init__(self, filesystem):
        self.filesystem = filesystem

    def calls_at_once(self, *schemes):
        return 4

    def filesystem_for(self, uri):
        return self.filesystem

    def schemes(self):
        return {self.filesystem.scheme: self.filesystem.plugin}


def on(filesystem):
    return gfile.using(OneFilesystem(filesystem))


def test_offers_what_tensorflow_offers():
    names = {
        "GFile", "copy", "exists", "get_registered_schemes", "glob", "isdir", "join", "listdir",
        "makedirs", "mkdir", "remove", "rename", "rmtree", "stat", "walk",
    }  # fmt: skip

    assert names <= set(gfile.__all__)
    assert all(callable(getattr(gfile, name)) for name in gfile.__all__)
    assert all(callable(getattr(gfile.GfileFunctions, name)) for name in names)


def test_failures_rise_but_from_isdir_and_an_empty_list_is_not_believed():
    refusal = PermissionDeniedError("no")
    functions = on(Scripted(path_exists=refusal, get_children=refusal, is_directory=refusal))
    missing = on(Scripted(get_children=[], is_directory=NotFoundError("no")))

    for ask in (functions.exists, functions.listdir):
        with pytest.raises(PermissionDeniedError, match="no"):
            ask("zz://a")
    assert not functions.isdir("zz://a")
    with pytest.raises(NotFoundError, match="no such directory"):
        missing.listdir("zz://a")


def test_rmtree_reports_what_is_left():
    with pytest.raises(PermissionDeniedError, match="2 files and 1 directories"):
        on(Scripted(delete_recursively=DeletedCounts(2, 1))).rmtree("zz://a")


def test_walk_raises_what_nobody_handles():
    refusal = PermissionDeniedError("no")
    functions, seen = on(Scripted(get_children=refusal)), []

    with pytest.raises(PermissionDeniedError):
        list(functions.walk("zz://a"))
    assert list(functions.walk("zz://a", onerror=seen.append)) == []
    assert seen == [refusal]


def test_a_refused_rename_of_a_file_rises():
    filesystem = Scripted(
        path_exists=False, is_directory=False, rename_file=FailedPreconditionError("busy")
    )

    with pytest.raises(FailedPreconditionError, match="busy"):
        on(filesystem).rename("zz://h/a", "zz://h/b")


def test_what_is_listed_is_sorted(functions, tmp_path):
    for name in "dbca":
        (tmp_path / name).touch()
        (tmp_path / f"dir-{name}").mkdir()

    assert functions.listdir(tmp_path) == [*"abcd", *(f"dir-{name}" for name in "abcd")]
    assert functions.glob(tmp_path / "?") == [str(tmp_path / name) for name in "abcd"]
    assert functions.get_registered_schemes() == ["", "file", "ram"]
    assert next(names for _, names, _ in functions.walk(tmp_path))[:2] == ["dir-a", "dir-b"]


def test_the_module_works_on_the_default_service_and_others_on_theirs(
    service, tmp_path, monkeypatch
):
    with type(service)(bundled=False) as empty, pytest.raises(UnimplementedError):
        gfile.using(empty).exists(tmp_path)
    for module in ("functions", "file"):
        monkeypatch.setattr(f"modular_tf.gfile.{module}.default_service", lambda: service)
    with modular_tf.gfile.GFile(tmp_path / "a", "w") as file:
        file.write("x")

    assert isinstance(file, gfile.GFile)
    assert gfile.exists(tmp_path / "a")
    assert gfile.stat(tmp_path / "a").length == 1
    assert gfile.get_registered_schemes() == ["", "file", "ram"]
