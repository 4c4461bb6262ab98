"""Keys of a bucket that are no paths: what is left out is named, and the status is never 0."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from textwrap import dedent

import pytest

from tests.emulators.conversation import ask

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

KEYS = (
    *("both/two", "both/two/child", "both/plain"),
    *("dots/x/../y", "dots/ok"),
    "slashes/a//b",
    *("beside/a", "beside//b"),
)
FOLDERS = ("both", "dots", "slashes", "beside")


@pytest.fixture
def store(s3_store, tmp_path):
    """The keys in a folder of this test alone."""
    store = replace(s3_store, base_uri=f"{s3_store.base_uri}{tmp_path}")
    for key in KEYS:
        put(store, key)
    return store


def put(store, key):
    assert ask("PUT", url_of(store, key), key.encode()).status == 200


def get(store, key):
    signed = {"Authorization": "AWS nobody:signature"}
    return ask("GET", url_of(store, key), headers=signed).body


def url_of(store, key):
    return f"{store.endpoint}/{store.uri(key).removeprefix('s3://')}"


@pytest.fixture
def fs_command(run_python, wild_plugins):
    """Run `modular-tf fs ...`, which must fail, and return what it says on standard error."""

    def run(store, *arguments, status=1):
        places = [*filter(None, [os.environ.get("PYTHONPATH")]), str(wild_plugins.site_dir)]
        environment = {**store.environment, "PYTHONPATH": os.pathsep.join(places)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        done = run_python(code, "fs", *arguments, env=environment, status=status)
        return done.stderr if status is not None else done

    return run


_VERBS = ("du U", "find U", "cp -r U T", "sync U T", "mv U T", "rm -r U")


_FACES = """
    import sys
    import modular_tf.fsspec
    from modular_tf import gfile

    folder, target = sys.argv[1:]
    files = mtf.fsspec.filesystem_class("s3")(service=service)
    functions = gfile.using(service)
    here, there = (uri(name).removeprefix("s3://") for name in (folder, f"new-{folder}"))
    kind = errors.DataLossError
    expect_error(kind, lambda: files.get(here, target, recursive=True))
    expect_error(kind, lambda: files.copy(here, there, recursive=True))
    expect_error(kind, lambda: files.mv(here, there, recursive=True))
    expect_error(kind, lambda: functions.rename(f"s3://{here}", f"s3://{there}"))
    expect(files.exists(there), False)
    if folder.startswith("both"):
        functions.rmtree(f"s3://{here}")
    else:
        expect_error(errors.ModularTFError, lambda: functions.rmtree(f"s3://{here}"))
    expect(functions.isdir(f"s3://{here}"), not folder.startswith("both"))
    expect(fs.path_exists(f"s3://{here}"), not folder.startswith("both"))
"""


@pytest.mark.parametrize("folder", [*FOLDERS, "both/two"])
def test_no_face_loses_what_it_cannot_name(store, run_subject, tmp_path, folder):
    run_subject(store, dedent(_FACES), folder, tmp_path / "copy")


def test_a_folder_with_such_a_key_can_be_listed(store, run_subject):
    run_subject(store, "expect(fs.get_children(uri('dots')), ['ok', 'x'])")


def test_in_usual_directories_of_each_store_nothing_is_left_out(object_store, run_subject):
    run_subject(
        object_store,
        """
        for name in ("ff", "ff2", "folder/a", "folder/deep/b"):
            put(name, b"x")
        for folder, names in (("folder", ["a", "deep"]), ("folder/deep", ["b"])):
            expect(tuple(fs.listing(uri(folder)))[:3], (names, (), frozenset()))
        expect(fs.listing(base).left_out, [])
        for name in ("ff", "folder", "folder/a", "nothing"):
            expect(fs.is_file_and_directory(uri(name)), False)
        """,
    )


@pytest.mark.parametrize(
    "words", ["sync U T", "cp -r U T", "cp -r U V", "mv U T", "mv U V", "du U", "find U"]
)
def test_of_a_name_that_is_a_file_and_a_directory_both_are_named(
    store, fs_command, tmp_path, words
):
    places = {"U": store.uri("both/two"), "V": store.uri("new"), "T": str(tmp_path / "copy")}
    said = fs_command(store, *(places.get(word, word) for word in words.split()))

    assert f"{places['U']}: is a file and a directory" in said
    if words.startswith("mv"):
        assert get(store, "both/two") == b"both/two"
        assert get(store, "both/two/child") == b"both/two/child"
        assert not (tmp_path / "copy").exists()
        assert b"NoSuchKey" in get(store, "new/child")
    elif "T" in words:
        assert (tmp_path / "copy" / "child").read_bytes() == b"both/two/child"
    elif "V" in words:
        assert get(store, "new/child") == b"both/two/child"


@pytest.mark.parametrize("name", ["both/two", "both"])
def test_a_removal_removes_both(store, fs_command, name):
    for way in (["-n"], []):
        done = fs_command(store, "rm", "-r", "-q", *way, store.uri(name), status=None)
        assert (done.returncode, done.stderr) == (0, "")
        shown = sorted(line.partition("\t")[2] for line in done.stdout.splitlines())
        assert shown[-2:] == [store.uri(key) for key in ("both/two", "both/two/child") if way]
    for key in ("both/two", "both/two/child"):
        assert b"NoSuchKey" in get(store, key)


def test_the_file_of_such_a_name_can_be_copied(store, fs_command, tmp_path):
    fs_command(store, "cp", store.uri("both/two"), str(tmp_path / "copy"), status=0)

    assert (tmp_path / "copy").read_bytes() == b"both/two"


@pytest.mark.parametrize(
    ("verb", "folder", "target"),
    [
        ("cp", "both/two", "T"),
        ("cp", "both/two", "V"),
        ("cp -r", "both", "T"),
        ("cp -r", "both", "V"),
        ("cp -r", "both/two", "T"),
        ("sync", "both", "T"),
        ("sync", "both/two", "V"),
        ("mv", "both", "T"),
        ("mv", "both/two", "T"),
        ("mv", "both/plain", "V"),
        ("mv", "beside", "V"),
        ("mv", "dots", "V"),
    ],
)
def test_a_rehearsal_and_a_run_go_the_same_way(store, fs_command, tmp_path, folder, verb, target):
    names = {"T": str(tmp_path / "copy"), "V": store.uri("new")}
    words = [*verb.split(), "-q", "--json", store.uri(folder), names[target]]
    for _ in range(2 if verb == "sync" else 1):  # the second time the target is there
        rehearsed = fs_command(store, *words, "-n", status=None)
        done = fs_command(store, *words, status=None)

        assert rehearsed.returncode == done.returncode
        assert rehearsed.stderr == done.stderr
        assert _results(rehearsed) == _results(done)


def _results(done):
    shown = json.loads(done.stdout)
    lists = {name: one for name, one in shown.items() if isinstance(one, list)}
    return {name: sorted(map(json.dumps, one)) for name, one in lists.items()}


def test_a_mirror_names_what_stays_in_the_target(store, fs_command, tmp_path):
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub" / "a").write_bytes(b"new")
    for key in ("mirror/sub/a", "mirror/sub/old", "mirror/sub//b", "mirror/sub/../y"):
        put(store, key)
    places = [str(tmp_path / "source"), store.uri("mirror")]
    for way in (["-n"], []):
        said = fs_command(store, "sync", "--delete", *way, *places)
        assert "'//'" in said
        assert "'..' was left out" in said
        assert f"{store.uri('mirror/sub')}: " in said
    assert b"NoSuchKey" in get(store, "mirror/sub/old")
    assert get(store, "mirror/sub/a") == b"new"
    assert get(store, "mirror/sub//b") == b"mirror/sub//b"


@pytest.mark.parametrize("words", ["glob U", "cp -r U T/", "ls U", "rm U"])
def test_a_pattern_names_what_it_cannot_match(store, fs_command, tmp_path, words):
    (tmp_path / "T").mkdir()
    places = {"U": store.uri("dots/*/*"), "T/": str(tmp_path / "T")}
    put(store, "dots/x/fine")
    said = fs_command(store, *(places.get(word, word) for word in words.split()))

    assert "'..' was left out" in said


_WARNED = """
    import sys, warnings
    import modular_tf.fsspec
    from modular_tf import IncompleteListingWarning, gfile

    files = mtf.fsspec.filesystem_class("s3")(service=service)
    functions = gfile.using(service)
    both, dots = (uri(name).removeprefix("s3://") for name in ("both", "dots"))

    def warned(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        expect({one.category for one in caught} - {IncompleteListingWarning}, set())
        return " ".join(str(one.message) for one in caught)

    for folder, what in (("both", "'two' is a file and a directory"), ("dots", "'..' was left")):
        there = uri(folder)
        path = there.removeprefix("s3://")
        for call in (
            lambda: fs.get_children(there if folder == "both" else f"{there}/x"),
            lambda: functions.listdir(there if folder == "both" else f"{there}/x"),
            lambda: list(functions.walk(there)),
            lambda: files.ls(path if folder == "both" else f"{path}/x", detail=False),
            lambda: files.ls(path if folder == "both" else f"{path}/x"),
            lambda: files.find(path),
            lambda: list(files.walk(path)),
            lambda: files.du(path),
            lambda: files.glob(f"{path}/**"),
        ):
            expect(what in warned(call), True)
    for call in (functions.glob, files.glob):
        expect("'..' was left" in warned(lambda: call(uri("dots/*/*"))), True)
    expect(warned(lambda: functions.listdir(uri("slashes"))), "")
"""


def test_what_may_leave_keys_out_warns(store, run_subject):
    run_subject(store, dedent(_WARNED))


def test_each_store_shows_a_name_that_is_both(object_store, run_subject):
    run_subject(
        object_store,
        """
        put("two/child", b"x")
        put("two", b"y")
        expect(fs.is_file_and_directory(uri("two")), True)
        expect(fs.listing(uri("two")).names, ["child"])
        expect_error(errors.DataLossError, lambda: fs.rename_file(uri("two"), uri("new")))
        expect([fs.path_exists(uri(name)) for name in ("two", "new")], [True, False])
        expect(any(fs.delete_recursively(uri("two"))), False)
        expect(fs.path_exists(uri("two")), False)
        """,
        folder="is-both",
    )
