"""`fs ls -R`, `du` and `find`: walks through whole trees."""

from __future__ import annotations

import os
import threading

import pytest

from modular_tf.cli.fs.work import FileWork
from modular_tf.errors import NotFoundError, PermissionDeniedError
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.trees import Walk
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of


@pytest.fixture
def tree(tmp_path):
    """A directory with files at three levels, and an empty directory."""
    base = tmp_path / "tree"
    (base / "a" / "deep").mkdir(parents=True)
    (base / "empty").mkdir()
    (base / "one.txt").write_bytes(b"1")
    (base / "a" / "two.txt").write_bytes(b"22")
    (base / "a" / "deep" / "large.bin").write_bytes(bytes(2**20))
    (base / "z.txt").write_bytes(b"4444")
    return base


# -- ls ---------------------------------------------------------------------------------------


def test_ls_r_has_a_heading_for_each_directory(mtf, tree):
    assert mtf("fs", "ls", "-R", tree).lines == [
        f"{tree}:", "a", "empty", "one.txt", "z.txt",
        f"{tree}/a:", "deep", "two.txt",
        f"{tree}/a/deep:", "large.bin",
        f"{tree}/empty:",
    ]  # fmt: skip


def test_ls_r_as_json_has_a_listing_for_each_directory(mtf, tree):
    listings = mtf("fs", "ls", "-R", tree, "--json").object["listings"]

    assert [listing["uri"] for listing in listings] == [
        str(tree), f"{tree}/a", f"{tree}/a/deep", f"{tree}/empty",
    ]  # fmt: skip
    assert [entry["size"] for entry in listings[0]["entries"]] == [None, None, 1, 4]


def test_ls_of_a_pattern_shows_files_before_directories(mtf, tree):
    assert mtf("fs", "ls", f"{tree}/[aoz]*").lines == [
        f"{tree}/one.txt", f"{tree}/z.txt", f"{tree}/a:", "deep", "two.txt",
    ]  # fmt: skip


def test_ls_shows_a_file_of_no_bytes_with_a_unit(mtf, tree):
    (tree / "empty" / "nothing").touch()

    assert mtf("fs", "ls", "-lh", tree / "empty").lines[0].split("\t")[1] == "0 B"


@pytest.mark.parametrize("verb", ["ls", "du", "find", "stat", "cat", "head", "tail"])
def test_a_pattern_without_a_match_is_an_error(mtf, tree, verb):
    ended = mtf("fs", verb, f"{tree}/*.none")

    assert (ended.code, ended.out) == (1, b"")
    assert ended.err == f"modular-tf: {tree}/*.none: nothing matches this pattern\n"


# -- du ---------------------------------------------------------------------------------------


def test_du_sums_up_each_directory_after_those_in_it(mtf, tree):
    assert mtf("fs", "du", tree).lines == [
        f"1048576\t{tree}/a/deep",
        f"1048578\t{tree}/a",
        f"0\t{tree}/empty",
        f"1048583\t{tree}",
    ]


def test_du_shows_as_much_as_is_wanted(mtf, tree):
    assert mtf("fs", "du", "-s", "-h", tree / "a", tree / "z.txt").lines == [
        f"1.0 MiB\t{tree}/a",
        f"4 B\t{tree}/z.txt",
    ]
    assert mtf("fs", "du", "--max-depth", 1, tree).lines == [
        f"1048578\t{tree}/a", f"0\t{tree}/empty", f"1048583\t{tree}",
    ]  # fmt: skip
    assert mtf("fs", "du", "-s", "--json", tree).object["usages"] == [
        {"uri": str(tree), "size": 1048583, "files": 4}
    ]


# -- find -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["--min-size", "1K"], ["a/deep/large.bin"]),
        (["--max-size", "2"], ["a/two.txt", "one.txt"]),
        (["--min-size", "2", "--max-size", "4"], ["a/two.txt", "z.txt"]),
        (["--type", "f", "--max-depth", "1"], ["one.txt", "z.txt"]),
    ],
)
def test_find_has_conditions(mtf, tree, conditions, found):
    assert mtf("fs", "find", tree, *conditions).lines == [f"{tree}/{name}" for name in found]


def test_find_knows_what_is_newer(mtf, tree):
    for number, path in enumerate([*tree.rglob("*"), tree]):
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
    os.utime(tree / "z.txt", (1_700_000_000, 1_700_000_000))
    os.utime(tree / "one.txt", (1_650_000_000, 1_650_000_000))

    assert mtf("fs", "find", tree, "--newer", tree / "one.txt").lines == [f"{tree}/z.txt"]
    assert mtf("fs", "find", tree, "--newer", tree / "none").code == 1


@pytest.mark.parametrize("size", ["", "-1", "1X", "x", "1.2.3"])
def test_a_size_that_is_none_is_wrong_usage(mtf, tree, size):
    ended = mtf("fs", "find", tree, f"--min-size={size}")

    assert ended.code == 2
    assert "is not a size such as 100, 64K or 1.5GiB" in ended.err


# -- walks ------------------------------------------------------------------------------------


class BusyStore(MemoryStore):
    """Lets listings wait until as many others are under way as there may be."""

    def __init__(self, at_once):
        super().__init__()
        self.together = threading.Barrier(at_once, timeout=30)
        self.listed_together = 0

    def enter(self, operation, uri):
        path = super().enter(operation, uri)
        if operation == "get_children" and path != "/b":
            self.together.wait()
            self.listed_together += 1
        return path


def walked(store, **options):
    """Return what a walk comes to, and how many failures there were."""
    with PluginService() as service:
        service.register_filesystem("mem", filesystem_of(store))
        work = FileWork(service, ["mem://host/b"])
        walk = Walk(work, **options)
        roots = walk.roots([Location(service.filesystem("mem"), "mem://host/b")])
        found = [
            (entry.location.uri.removeprefix("mem://host"), entry.depth)
            for entry in walk.through(roots)
        ]
    return found, len(work.failures)


def test_directories_of_a_network_are_listed_at_once():
    store = BusyStore(at_once=16)
    store.dirs |= {"/b", *(f"/b/d{number:02}" for number in range(32))}
    store.files |= {f"/b/d{number:02}/f": b"" for number in range(32)}

    found, _ = walked(store)

    assert found[:3] == [("/b", 0), ("/b/d00", 1), ("/b/d00/f", 2)]
    assert len(found) == 65
    assert store.listed_together == 32


def test_what_cannot_be_listed_is_told_and_the_rest_is_walked(capsys):
    store = MemoryStore()
    store.dirs |= {"/b", "/b/closed", "/b/open"}
    store.files["/b/open/f"] = b""
    store.faults["get_children", "/b/closed"] = PermissionDeniedError("not yours")
    found, n_failures = walked(store)

    assert found == [
        ("/b", 0), ("/b/closed", 1), ("/b/open", 1), ("/b/open/f", 2),
    ]  # fmt: skip
    assert n_failures == 1
    assert "mem://host/b/closed: not yours" in capsys.readouterr().err


def test_what_cannot_be_looked_at_is_told_and_the_rest_is_walked(capsys):
    store = MemoryStore()
    store.dirs |= {"/b", "/b/closed"}
    store.files |= {"/b/closed/f": b"", "/b/f": b"", "/b/gone": b""}
    store.faults["stat", "/b/closed"] = PermissionDeniedError("not yours")
    store.faults["stat", "/b/gone"] = NotFoundError("gone meanwhile")
    found, n_failures = walked(store)

    assert found == [("/b", 0), ("/b/closed", 1), ("/b/f", 1), ("/b/gone", 1)]
    assert n_failures == 1
    assert "mem://host/b/closed: not yours" in capsys.readouterr().err


def test_a_plugin_that_lists_no_buckets_is_told(capsys):
    store = MemoryStore()
    with PluginService() as service:
        service.register_filesystem("mem", filesystem_of(store))
        work = FileWork(service, ["mem://"])
        buckets = Location(service.filesystem("mem"), "mem://")
        assert Walk(work).roots([buckets]) == []
        store.files["/b"] = b""
        assert len(Walk(work).roots([buckets])) == 1

    assert len(work.failures) == 1
    assert "does not list what there is; name it: mem://BUCKET/" in capsys.readouterr().err
