"""Keys of a bucket that are no paths: what is left out is named, and the status is never 0."""

from __future__ import annotations

import os
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
WORDS = {
    "both": "'two' is a file and a directory",
    "dots": "'..' was left out",
    "slashes": "'//'",
    "beside": "'//'",
}


@pytest.fixture
def store(distant_s3):
    for key in KEYS:
        ask("PUT", f"{distant_s3.endpoint}/fixture/{key}", key.encode())
    return distant_s3


@pytest.fixture
def fs_command(run_python, wild_plugins):
    """Run `modular-tf fs ...`, which must fail, and return what it says on standard error."""

    def run(store, *arguments):
        places = [*filter(None, [os.environ.get("PYTHONPATH")]), str(wild_plugins.site_dir)]
        environment = {**store.environment, "PYTHONPATH": os.pathsep.join(places)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        return run_python(code, "fs", *arguments, env=environment, status=1).stderr

    return run


@pytest.mark.parametrize("folder", WORDS)
@pytest.mark.parametrize("words", ["du U", "find U", "cp -r U T", "sync U T", "mv U T", "rm -r U"])
def test_a_command_names_what_it_leaves_out(store, fs_command, tmp_path, folder, words):
    places = {"U": store.uri(folder), "T": str(tmp_path / "copy")}
    said = fs_command(store, *(places.get(word, word) for word in words.split()))

    assert WORDS[folder] in said
    if folder == "dots" and words.startswith(("cp", "sync")):
        assert (tmp_path / "copy" / "ok").read_bytes() == b"dots/ok"


_FACES = """
    import sys
    import modular_tf.fsspec
    from modular_tf import gfile

    folder, target = sys.argv[1:]
    files = mtf.fsspec.filesystem_class("s3")(service=service)
    functions = gfile.using(service)
    here, there = f"fixture/{folder}", f"fixture/new-{folder}"
    kind = errors.DataLossError
    expect_error(kind, lambda: files.get(here, target, recursive=True))
    expect_error(kind, lambda: files.copy(here, there, recursive=True))
    expect_error(kind, lambda: files.mv(here, there, recursive=True))
    expect_error(kind, lambda: functions.rename(f"s3://{here}", f"s3://{there}"))
    expect(files.exists(there), False)
    expect_error(errors.ModularTFError, lambda: functions.rmtree(f"s3://{here}"))
    expect(functions.isdir(f"s3://{here}"), True)
"""


@pytest.mark.parametrize("folder", WORDS)
def test_no_face_loses_what_it_cannot_name(store, run_subject, tmp_path, folder):
    run_subject(store, dedent(_FACES), folder, tmp_path / "copy")


def test_a_folder_with_such_a_key_can_be_listed(store, run_subject):
    run_subject(store, "expect(fs.get_children(uri('dots')), ['ok', 'x'])")


@pytest.mark.parametrize("verb", ["cp -r", "mv"])
def test_the_directory_of_a_file_that_was_named_is_not_left_out_in_silence(
    store, fs_command, tmp_path, verb
):
    said = fs_command(store, *verb.split(), store.uri("both/two"), str(tmp_path / "copy"))

    assert "directory" in said
    left = ask("GET", f"{store.endpoint}/fixture/both/two/child")
    assert left.body == b"both/two/child"


def test_in_usual_directories_of_each_store_nothing_is_left_out(object_store, run_subject):
    run_subject(
        object_store,
        """
        for name in ("ff", "ff2", "folder/a", "folder/deep/b"):
            put(name, b"x")
        for folder, names in (("folder", ["a", "deep"]), ("folder/deep", ["b"])):
            expect(tuple(fs.listing(uri(folder))), (names, []))
        expect(fs.listing(base).left_out, [])
        expect([fs.is_also_directory(uri(name)) for name in ("ff", "folder/a")], [False, False])
        """,
    )
