"""`modular-tf fs` on real plugins, which the command finds by itself among the installed ones."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from tests.fixtures.matrices import sampled

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_STORES = ["s3", "az", "gs", "oss"]


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    """A file of 24 MiB that no repetition can fake."""
    file = tmp_path_factory.mktemp("large") / "large"
    file.write_bytes(os.urandom(24 << 20))
    return file


def _digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("object_store", ["s3", "az", "gs"], indirect=True)
def test_a_large_file_goes_there_and_comes_back(
    object_store, run_fs, large_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("S3_MULTI_PART_UPLOAD_CHUNK_SIZE", str(5 << 20))  # else 50 MiB
    there, back = object_store.uri("command/large"), tmp_path / "back"
    run_fs(object_store, ["cp", large_file, there])
    run_fs(object_store, ["cp", there, back])
    assert _digest(back) == _digest(large_file)


@pytest.mark.parametrize("store_name", ["http_store", "http_store_without_ranges"])
def test_a_large_file_comes_from_the_web(store_name, request, run_fs, large_file, tmp_path):
    store = request.getfixturevalue(store_name)
    (store.folder / "large").write_bytes(large_file.read_bytes())
    run_fs(store, ["cp", store.uri("large"), tmp_path / "back"])
    assert _digest(tmp_path / "back") == _digest(large_file)
    if store_name == "http_store":
        for words in ("cat M", "stat M", "cp M T"):
            places = {"M": store.uri("missing"), "T": tmp_path / "target"}
            run_fs(store, words, places, status=1)


@pytest.mark.parametrize("object_store", sampled(_STORES, ["gs"]), indirect=True)
def test_a_tree_is_made_listed_moved_and_removed(object_store, run_fs, tmp_path):
    root = object_store.uri("tree")
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "one.txt").write_text("one")
    (tmp_path / "source" / "sub" / "two.txt").write_text("two")

    def run(*words, status=0):
        return run_fs(object_store, list(words), status=status).stdout

    run("mkdir", root)
    run("cp", "-r", tmp_path / "source", root)
    (listing,) = json.loads(run("ls", f"{root}/source", "--json"))["listings"]
    names = [entry["uri"].rpartition("/")[2] for entry in listing["entries"]]
    assert names == ["one.txt", "sub"]
    assert run("cat", f"{root}/source/sub/two.txt") == "two"
    (found,) = json.loads(run("stat", "--json", f"{root}/source/one.txt"))["files"]
    assert (found["type"], found["size"]) == ("file", 3)
    assert run("glob", f"{root}/*/*.txt") == f"{root}/source/one.txt\n"
    assert f"{root}/source/sub/two.txt\n" in run("find", root)
    run("mv", f"{root}/source", f"{root}/moved")
    assert run("cat", f"{root}/moved/one.txt") == "one"
    run("rm", "-r", root)
    run("ls", root, status=1)


@pytest.mark.parametrize("object_store", sampled(_STORES, ["az"]), indirect=True)
def test_what_is_missing_is_exit_status_1(object_store, run_fs, tmp_path):
    places = {
        "M": object_store.uri("missing/file"),
        "T": tmp_path / "target",
        "U": object_store.uri("target"),
    }
    for words in ("ls M", "cat M", "stat M", "cp M T", "mv M U", "rm M", "rm -r M"):
        child = run_fs(object_store, words, places, status=1)
        assert "missing/file" in child.stderr
        assert "Traceback" not in child.stderr


@pytest.mark.parametrize("object_store", sampled(_STORES, ["oss"]), indirect=True)
def test_patterns_sizes_and_parts_of_files(object_store, run_fs, tmp_path):
    root = object_store.uri("parts")
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    (tmp_path / "parts" / "one.txt").write_text("1\n2\n3\n")
    (tmp_path / "parts" / "sub" / "two.txt").write_text("".join(f"{n}\n" for n in range(100_000)))
    run_fs(object_store, ["cp", "-r", tmp_path / "parts", root])

    def lines(*words):
        return run_fs(object_store, list(words)).stdout.splitlines()

    assert lines("ls", f"{root}/o*") == [f"{root}/one.txt"]
    assert lines("ls", "-R", root) == [f"{root}:", "one.txt", "sub", f"{root}/sub:", "two.txt"]
    assert lines("du", root) == [f"588890\t{root}/sub", f"588896\t{root}"]
    names = ("", "/one.txt", "/sub", "/sub/two.txt")
    assert lines("find", root) == [f"{root}{name}" for name in names]
    assert lines("find", root, "--min-size", "1K") == [f"{root}/sub/two.txt"]
    assert lines("head", "-n", 2, f"{root}/sub/two.txt") == ["0", "1"]
    assert lines("tail", "-n", 2, f"{root}/sub/two.txt") == ["99998", "99999"]
    assert lines("tail", f"{root}/one.txt") == ["1", "2", "3"]
    assert lines("cat", "-r", "2-3", f"{root}/one.txt") == ["2"]
    assert lines("cat", "-r", "-2", f"{root}/*.txt") == ["3"]
    run_fs(object_store, ["stat", f"{root}/*.none"], status=1)
    run_fs(object_store, ["rm", "-r", root])


def test_a_scheme_without_buckets_to_list_says_what_to_type(object_store, run_fs):
    scheme = object_store.base_uri.partition("://")[0]
    child = run_fs(object_store, ["ls", f"{scheme}://"], status=1)

    assert child.stdout == ""
    assert child.stderr.startswith(f"modular-tf: {scheme}://: ")
    assert "Traceback" not in child.stderr
