"""Keys of a bucket that are no paths: what is left out is named, and the status is never 0."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.emulators.conversation import ask

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

KEYS = (
    *("both/two", "both/two/child", "both/plain"),
    *("dots/x/../y", "dots/ok"),
    "slashes/a//b",
    *("beside/a", "beside//b"),
)


@pytest.fixture
def store(distant_s3, tmp_path):
    """The keys in a folder of this test alone."""
    store = replace(distant_s3, base_uri=f"{distant_s3.base_uri}{tmp_path}")
    for key in KEYS:
        put(store, key)
    return store


def url_of(store, key):
    return f"{store.endpoint}/{store.uri(key).removeprefix('s3://')}"


def put(store, key):
    assert ask("PUT", url_of(store, key), key.encode()).status == 200


def get(store, key):
    return ask("GET", url_of(store, key)).body


_FACES = """
    import modular_tf.fsspec
    from modular_tf import IncompleteListingWarning, gfile
    import warnings

    files = mtf.fsspec.filesystem_class("s3")(service=service)
    functions = gfile.using(service)
    kind = errors.DataLossError

    def warned(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        expect({one.category for one in caught} - {IncompleteListingWarning}, set())
        return " ".join(str(one.message) for one in caught)

    expect(fs.get_children(uri("dots")), ["ok", "x"])
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

    warnings.simplefilter("ignore")
    for folder in ("both/two", "both", "dots", "slashes", "beside"):
        here, there = (uri(name).removeprefix("s3://") for name in (folder, f"new-{folder}"))
        change("both/two", b"a file")
        change("both/two/child", b"and a directory")
        expect_error(kind, lambda: files.get(here, f"{sys.argv[1]}/{folder}", recursive=True))
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


def test_no_face_loses_what_it_cannot_name_and_what_may_leave_it_out_warns(
    store, run_subject, tmp_path
):
    run_subject(store, _FACES, tmp_path / "copies")


def test_each_store_shows_a_name_that_is_both_and_leaves_nothing_out_of_usual_ones(
    object_store, run_subject
):
    run_subject(
        object_store,
        {
            "usual": """
                for name in ("ff", "ff2", "folder/a", "folder/deep/b"):
                    put(name, b"x")
                for folder, names in (("folder", ["a", "deep"]), ("folder/deep", ["b"])):
                    expect(tuple(fs.listing(uri(folder)))[:3], (names, (), frozenset()))
                expect(fs.listing(base).left_out, [])
                for name in ("ff", "folder", "folder/a", "nothing"):
                    expect(fs.is_file_and_directory(uri(name)), False)
                """,
            "is-both": """
                put("two/child", b"x")
                put("two", b"y")
                expect(fs.is_file_and_directory(uri("two")), True)
                expect(fs.listing(uri("two")).names, ["child"])
                expect_error(errors.DataLossError, lambda: fs.rename_file(uri("two"), uri("new")))
                expect([fs.path_exists(uri(name)) for name in ("two", "new")], [True, False])
                expect(any(fs.delete_recursively(uri("two"))), False)
                expect(fs.path_exists(uri("two")), False)
                """,
        },
    )


@pytest.mark.parametrize(
    "words", ["sync U T", "cp -r U T", "cp -r U V", "mv U T", "mv U V", "du U", "find U"]
)
def test_of_a_name_that_is_a_file_and_a_directory_both_are_named(store, run_fs, tmp_path, words):
    places = {"U": store.uri("both/two"), "V": store.uri("new"), "T": tmp_path / "copy"}
    said = run_fs(store, words, places, status=1).stderr

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


def test_the_file_of_such_a_name_is_copied_and_a_removal_removes_both(store, run_fs, tmp_path):
    run_fs(store, "cp U T", {"U": store.uri("both/two"), "T": tmp_path / "copy"})
    assert (tmp_path / "copy").read_bytes() == b"both/two"

    keys = ("both/two", "both/two/child")
    for way in ("-n ", ""):
        done = run_fs(store, f"rm -r -q {way}U", {"U": store.uri("both/two")})
        shown = sorted(line.partition("\t")[2] for line in done.stdout.splitlines())
        assert (shown[-2:], done.stderr) == ([store.uri(key) for key in keys if way], "")
    assert all(b"NoSuchKey" in get(store, key) for key in keys)


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("cp U V", "both/two"),
        ("cp -r U T", "both"),
        ("cp -r U V", "both"),
        ("sync U T", "both"),
        ("sync U V", "both/two"),
        ("mv U T", "both/two"),
        ("mv U V", "both/plain"),
        ("mv U V", "beside"),
        ("mv U V", "dots"),
    ],
)
def test_a_rehearsal_and_a_run_go_the_same_way(store, run_fs, tmp_path, words, folder):
    places = {"U": store.uri(folder), "T": tmp_path / "copy", "V": store.uri("new")}
    for _ in range(2 if "sync" in words else 1):  # the second time the target is there
        rehearsed, done = (
            run_fs(store, f"{words} -q --json {way}", places, status=None) for way in ("-n", "")
        )
        assert (rehearsed.returncode, rehearsed.stderr) == (done.returncode, done.stderr)
        assert _results(rehearsed) == _results(done)


def _results(done):
    shown = json.loads(done.stdout)
    lists = {name: one for name, one in shown.items() if isinstance(one, list)}
    return {name: sorted(map(json.dumps, one)) for name, one in lists.items()}


def test_a_mirror_names_what_stays_in_the_target(store, run_fs, tmp_path):
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub" / "a").write_bytes(b"new")
    for key in ("mirror/sub/a", "mirror/sub/old", "mirror/sub//b", "mirror/sub/../y"):
        put(store, key)
    places = {"S": tmp_path / "source", "U": store.uri("mirror")}
    for way in ("-n ", ""):
        said = run_fs(store, f"sync --delete {way}S U", places, status=1).stderr
        assert "'//'" in said
        assert "'..' was left out" in said
        assert f"{store.uri('mirror/sub')}: " in said
    assert b"NoSuchKey" in get(store, "mirror/sub/old")
    assert get(store, "mirror/sub/a") == b"new"
    assert get(store, "mirror/sub//b") == b"mirror/sub//b"


def test_a_pattern_names_what_it_cannot_match(store, run_fs, tmp_path):
    (tmp_path / "T").mkdir()
    put(store, "dots/x/fine")
    for words in ("glob U", "cp -r U T", "ls U", "rm U"):
        places = {"U": store.uri("dots/*/*"), "T": f"{tmp_path / 'T'}/"}
        assert "'..' was left out" in run_fs(store, words, places, status=1).stderr, words
