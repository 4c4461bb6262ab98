"""`modular-tf fs` on real plugins, which the command finds by itself among the installed ones."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from tests.fixtures.matrices import sampled

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_SIZE = 64 << 20
_STORES = ["s3", "az", "gs", "oss"]


@pytest.fixture
def fs_command(run_python, wild_plugins):
    """Run `modular-tf fs ...` against a store."""

    def run(store, *arguments, status=0):
        places = [*filter(None, [os.environ.get("PYTHONPATH")]), str(wild_plugins.site_dir)]
        environment = {**store.environment, "PYTHONPATH": os.pathsep.join(places)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        return run_python(code, "fs", *arguments, env=environment, status=status)

    return run


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    """A file of 64 MiB that no repetition can fake."""
    file = tmp_path_factory.mktemp("large") / "large"
    file.write_bytes(os.urandom(_SIZE))
    return file


def _digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("store_name", ["s3_store", "azure_store", "gcs_store"])
def test_a_large_file_goes_there_and_comes_back(
    store_name, request, fs_command, large_file, tmp_path
):
    store = request.getfixturevalue(store_name)
    there, back = store.uri("command/large"), tmp_path / "back"
    fs_command(store, "cp", large_file, there)
    fs_command(store, "cp", there, back)
    assert _digest(back) == _digest(large_file)
    fs_command(store, "rm", there)


@pytest.mark.parametrize("store_name", ["http_store", "http_store_without_ranges"])
def test_a_large_file_comes_from_the_web(store_name, request, fs_command, large_file, tmp_path):
    store = request.getfixturevalue(store_name)
    served = store.folder / "large"
    if not served.exists():
        served.write_bytes(large_file.read_bytes())
    fs_command(store, "cp", store.uri("large"), tmp_path / "back")
    assert _digest(tmp_path / "back") == _digest(served)


@pytest.mark.parametrize("object_store", sampled(_STORES, ["s3", "gs"]), indirect=True)
def test_a_tree_is_made_listed_moved_and_removed(object_store, fs_command, tmp_path):
    store, root = object_store, object_store.uri("tree")
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "one.txt").write_text("one")
    (tmp_path / "source" / "sub" / "two.txt").write_text("two")

    fs_command(store, "mkdir", root)
    fs_command(store, "cp", "-r", tmp_path / "source", root)
    (listing,) = json.loads(fs_command(store, "ls", f"{root}/source", "--json").stdout)["listings"]
    names = [entry["uri"].rpartition("/")[2] for entry in listing["entries"]]
    assert names == ["one.txt", "sub"]
    assert fs_command(store, "cat", f"{root}/source/sub/two.txt").stdout == "two"
    (found,) = json.loads(fs_command(store, "stat", "--json", f"{root}/source/one.txt").stdout)[
        "files"
    ]
    assert (found["type"], found["size"]) == ("file", 3)
    assert fs_command(store, "glob", f"{root}/*/*.txt").stdout == f"{root}/source/one.txt\n"
    assert f"{root}/source/sub/two.txt\n" in fs_command(store, "find", root).stdout
    fs_command(store, "mv", f"{root}/source", f"{root}/moved")
    assert fs_command(store, "cat", f"{root}/moved/one.txt").stdout == "one"
    fs_command(store, "rm", "-r", root)
    fs_command(store, "ls", root, status=1)


@pytest.mark.parametrize("object_store", sampled(_STORES, ["s3", "az"]), indirect=True)
def test_what_is_missing_is_exit_status_1(object_store, fs_command, tmp_path):
    missing = object_store.uri("missing/file")
    for arguments in (
        ("ls", missing),
        ("cat", missing),
        ("stat", missing),
        ("cp", missing, tmp_path / "target"),
        ("mv", missing, object_store.uri("target")),
        ("rm", missing),
        ("rm", "-r", missing),
    ):
        child = fs_command(object_store, *arguments, status=1)
        assert "missing/file" in child.stderr
        assert "Traceback" not in child.stderr


def test_what_is_missing_on_the_web_is_exit_status_1(http_store, fs_command, tmp_path):
    missing = http_store.uri("missing")
    for arguments in (("cat", missing), ("stat", missing), ("cp", missing, tmp_path / "target")):
        fs_command(http_store, *arguments, status=1)


@pytest.mark.parametrize("object_store", sampled(_STORES, ["oss"]), indirect=True)
def test_patterns_sizes_and_parts_of_files(object_store, fs_command, tmp_path):
    store, root = object_store, object_store.uri("parts")
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    (tmp_path / "parts" / "one.txt").write_text("1\n2\n3\n")
    (tmp_path / "parts" / "sub" / "two.txt").write_text("".join(f"{n}\n" for n in range(100_000)))
    fs_command(store, "cp", "-r", tmp_path / "parts", root)

    def lines(*arguments):
        return fs_command(store, *arguments).stdout.splitlines()

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
    fs_command(store, "stat", f"{root}/*.none", status=1)
    fs_command(store, "rm", "-r", root)


def test_a_scheme_without_buckets_to_list_says_what_to_type(object_store, fs_command):
    scheme = object_store.base_uri.partition("://")[0]
    child = fs_command(object_store, "ls", f"{scheme}://", status=1)

    assert child.stdout == ""
    assert child.stderr.startswith(f"modular-tf: {scheme}://: ")
    assert "Traceback" not in child.stderr
