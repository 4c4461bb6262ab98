"""Copies of trees to and from a real store, and uploads that an interrupt ends."""

from __future__ import annotations

import json
import os

import pytest

from tests.fixtures.emulators import proxied

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_FILES = 40


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "tree"
    base.mkdir()
    for number in range(_FILES):
        (base / f"f{number:02}").write_bytes(os.urandom(1000 + number))
    return base


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_tree_goes_up_by_one_request_a_file_and_comes_back(distant_s3, run_fs, tree, tmp_path):
    places = {"L": tree, "U": distant_s3.uri("transfers/tree"), "B": tmp_path / "back"}
    distant_s3.forget_requests()
    report = run_fs(distant_s3, "cp -r L U", places).stderr
    up = distant_s3.requests()
    distant_s3.forget_requests()
    run_fs(distant_s3, "cp -r U B", places)
    down = distant_s3.requests()

    assert report.startswith(f"modular-tf: {_FILES} files copied")
    assert contents(tmp_path / "back") == contents(tree)
    assert up["PUT"] == _FILES
    assert sum(up.values()) <= _FILES + 4
    assert sum(down.values()) <= 4 * _FILES + 10
    run_fs(distant_s3, "rm -r U", places)
    assert json.loads(run_fs(distant_s3, ["ls", "--json", distant_s3.uri("")]).stdout)


@pytest.fixture
def slow(s3_store, tmp_path):
    """The store, which keeps what is to be stored waiting."""
    with proxied(s3_store, tmp_path) as proxy:
        proxy.set(held="PUT")
        yield proxy


def test_the_upload_of_an_interrupted_close_goes_on(slow, run_subject):
    """In Python: Ctrl-C ends the wait, and the end of the service waits for the data."""
    run_subject(
        slow,
        """
        import signal, threading
        def interrupt():
            while not requests_now().get("PUT", 0):  # it is under way, and held
                pass
            os.kill(os.getpid(), signal.SIGINT)

        def interrupt_upload():
            forget_requests()
            threading.Thread(target=interrupt).start()

        size = 1_000_000
        file = fs.open(uri("python"), "wb")
        file.write(bytes(size))
        interrupt_upload()
        try:
            file.close()
            raise AssertionError("nothing interrupted it")
        except KeyboardInterrupt as interruption:
            notes = getattr(interruption, "__notes__", ["is still being stored"])
            assert "is still being stored" in notes[0], notes
        expect(file.closed, False)
        expect_error(errors.NotFoundError, fs.stat, uri("python"))
        set_up(held="")
        file.close()
        expect(fs.stat(uri("python")).length, size)

        def write(mode, data):
            set_up(held="PUT")
            interrupt_upload()
            try:
                with fs.open(uri(mode), mode) as file:
                    file.write(data)
            except KeyboardInterrupt:
                pass
            # Nobody has the file any more; its end has not waited for the upload.

        for mode, data in (("wb", bytes(size)), ("w", "x" * size)):
            write(mode, data)
            expect_error(errors.NotFoundError, fs.stat, uri(mode))
        set_up(held="")
        fs.close()
        again = begin().filesystem_for(base)
        for mode in ("wb", "w"):
            expect(again.stat(uri(mode)).length, size)
        """,
        folder="interrupted",
    )
