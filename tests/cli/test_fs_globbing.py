"""Patterns in the URIs of file verbs."""

from __future__ import annotations

import warnings

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf.cli.fs.work import FileWork
from modular_tf.errors import InvalidArgumentError, NotFoundError
from modular_tf.service.service import PluginService


@pytest.fixture
def service():
    with PluginService() as service:
        service.load()
        yield service


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "tree"
    (base / "sub").mkdir(parents=True)
    (base / "a1.txt").write_bytes(b"one")
    (base / "a2.txt").write_bytes(b"two")
    (base / "sub" / "a3.txt").write_bytes(b"three")
    return base


def expand(service, uri):
    return FileWork(service, [uri]).expand(uri)


def uris(locations):
    return [location.uri for location in locations]


def test_a_uri_without_wildcards_is_itself(service, tree):
    assert uris(expand(service, f"{tree}/none")) == [f"{tree}/none"]


def test_a_pattern_stands_for_what_matches(service, tree):
    assert uris(expand(service, f"file://{tree}/a?.txt")) == [
        f"file://{tree}/a1.txt",
        f"file://{tree}/a2.txt",
    ]
    assert uris(expand(service, f"{tree}/*/a[1-9].txt")) == [f"{tree}/sub/a3.txt"]


@pytest.mark.parametrize("name", ["a*", "a[1].txt", "a?.txt", "a\\*"])
def test_a_name_that_exists_is_no_pattern(service, tree, name):
    (tree / name).write_bytes(b"literal")

    assert uris(expand(service, f"{tree}/{name}")) == [f"{tree}/{name}"]


def test_a_backslash_escapes(service, tree):
    (tree / "a*").write_bytes(b"literal")

    assert uris(expand(service, f"{tree}/a\\*")) == [f"{tree}/a*"]


def test_no_match_is_an_error(service, tree):
    with pytest.raises(NotFoundError, match="nothing matches"):
        expand(service, f"{tree}/*.none")


def test_a_wildcard_before_the_path_is_refused(service):
    with pytest.raises(InvalidArgumentError, match="in the path only"):
        expand(service, "file://h*st/x")


class _Remarking(MemoryFileSystem):
    """A client that warns of something else."""

    def ls(self, path, *arguments, **options):
        warnings.warn("a remark", FutureWarning, stacklevel=2)
        return super().ls(path, *arguments, **options)


def test_a_warning_of_a_client_is_no_failure_and_is_not_lost(service):
    client = _Remarking(global_store=False, skip_instance_cache=True)
    client.pipe_file("/d/a.txt", b"x")
    service.register_filesystem("remarking", client)
    work = FileWork(service, [])
    with pytest.warns(FutureWarning, match="a remark"):
        found = work.expand("remarking:///d/*.txt")

    assert uris(found) == ["remarking:///d/a.txt"]
    assert work.failures == []
