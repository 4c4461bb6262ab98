"""Patterns in the URIs of file verbs."""

import warnings

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf.cli.fs.work import FileWork
from modular_tf.errors import InvalidArgumentError
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
    return [location.uri for location in FileWork(service, [uri]).expand(uri)]


@pytest.mark.parametrize(
    ("pattern", "uris"),
    [
        ("{tree}/none", ["{tree}/none"]),  # without wildcards it is itself
        ("file://{tree}/a?.txt", ["file://{tree}/a1.txt", "file://{tree}/a2.txt"]),
        ("{tree}/*/a[1-9].txt", ["{tree}/sub/a3.txt"]),
    ],
)
def test_a_pattern_stands_for_what_matches(service, tree, pattern, uris):
    assert expand(service, pattern.format(tree=tree)) == [uri.format(tree=tree) for uri in uris]


@pytest.mark.parametrize("name", ["a*", "a[1].txt", "a?.txt", "a\\*"])
def test_a_name_that_exists_is_no_pattern_and_a_backslash_escapes(service, tree, name):
    (tree / name).write_bytes(b"literal")

    assert expand(service, f"{tree}/{name}") == [f"{tree}/{name}"]
    if name == "a*":
        assert expand(service, f"{tree}/a\\*") == [f"{tree}/a*"]


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

    assert [location.uri for location in found] == ["remarking:///d/a.txt"]
    assert work.failures == []
