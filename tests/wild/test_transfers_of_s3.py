"""Copies of trees to and from a real store, and uploads that an interrupt ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.emulators.conversation import ask
from tests.fixtures.emulators import REPOSITORY
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT
from tests.fixtures.process_group import running_server

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_FILES = 40
_SLOW = 200_000  # bytes in a second
_LARGE = 40 * _SLOW
_PATIENCE_S = 60
_SOON_S = 5  # far less than the upload; an idle machine needs a second


def way_to(store, rate, log):
    port = urlsplit(store.endpoint).port
    command = [sys.executable, "-m", "tests.emulators.throttle", str(port), str(rate)]
    ready = r"listening on (http://\S+)\n"
    return running_server(command, ready, log=log, cwd=REPOSITORY, env=DEVELOPER_ENVIRONMENT)


def by_way(store, found):
    return replace(store, environment={**store.environment, "S3_ENDPOINT": found[1]})


@pytest.fixture
def slow(s3_store, tmp_path):
    """The store, which bytes reach slowly."""
    with way_to(s3_store, _SLOW, tmp_path / "throttle.log") as found:
        yield by_way(s3_store, found)


@pytest.fixture
def counted(s3_store, tmp_path):
    """The store, and what counts its requests."""
    with way_to(s3_store, 1 << 30, tmp_path / "throttle.log") as found:
        yield by_way(s3_store, found)


@pytest.fixture
def started(wild_environment):
    """Start `modular-tf fs ...` on a store; what is still running at the end is killed."""
    children = []

    def start(store, *words, stderr=subprocess.PIPE):
        environment = wild_environment(store)
        plugin = environment["WILD_PLUGIN"]
        command = [sys.executable, "-m", "modular_tf", "--plugin", plugin, "fs", *map(str, words)]
        environment = {**os.environ, **environment}
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.PIPE
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def command(started):
    def run(store, *words, status=0):
        child = started(store, *words)
        out, err = child.communicate(timeout=120)
        assert child.returncode == status, err
        return out, err.decode()

    return run


def requests_of(store):
    return ask("GET", f"{store.environment['S3_ENDPOINT']}/__requests").json()


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "tree"
    base.mkdir()
    for number in range(_FILES):
        (base / f"f{number:02}").write_bytes(os.urandom(1000 + number))
    return base


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_tree_goes_up_by_one_request_a_file_and_comes_back(counted, command, tree, tmp_path):
    there = counted.uri("transfers/tree")
    _, told = command(counted, "cp", "-r", tree, there)
    up = requests_of(counted)
    command(counted, "cp", "-r", there, tmp_path / "back")
    down = requests_of(counted)

    assert told.startswith(f"modular-tf: {_FILES} files copied")
    assert contents(tmp_path / "back") == contents(tree)
    assert up["PUT"] == _FILES
    assert sum(up.values()) <= _FILES + 4
    assert sum(down.values()) - sum(up.values()) <= 4 * _FILES + 10
    command(counted, "rm", "-r", there)
    assert json.loads(command(counted, "ls", "--json", counted.uri(""))[0])


def test_a_tree_is_synchronised_moved_and_removed(s3_store, command, tree):
    there, moved = s3_store.uri("transfers/sync"), s3_store.uri("transfers/moved")
    command(s3_store, "sync", tree, there)
    (tree / "f00").write_bytes(b"changed")
    (tree / "f01").unlink()
    out, _ = command(s3_store, "sync", tree, there, "--delete", "--json")
    assert [one["to"] for one in json.loads(out)["copied"]] == [f"{there}/f00"]
    assert json.loads(out)["deleted"] == [f"{there}/f01"]
    for words in (tree, there), (there, tree, "--size-only"):
        out, _ = command(s3_store, "sync", *words, "--json")
        assert json.loads(out)["copied"] == []

    command(s3_store, "mv", there, moved)
    assert command(s3_store, "cp", f"{moved}/f00", "-")[0] == b"changed"
    assert b"f39" in command(s3_store, "ls", moved)[0]
    command(s3_store, "rm", "-r", moved)
    command(s3_store, "ls", moved, status=1)


def test_standard_input_goes_to_the_store(s3_store, started, command):
    child = started(s3_store, "cp", "-", s3_store.uri("transfers/stdin"))
    out, err = child.communicate(b"from a pipe", timeout=_PATIENCE_S)
    assert (child.returncode, out) == (0, b""), err
    assert command(s3_store, "cp", s3_store.uri("transfers/stdin"), "-")[0] == b"from a pipe"


@pytest.fixture
def large(tmp_path):
    file = tmp_path / "large"
    file.write_bytes(os.urandom(_LARGE))
    return file


def said_by(descriptor, words):
    """Read until these words come; return what was read."""
    said = b""
    while words not in said:
        assert select.select([descriptor], [], [], _PATIENCE_S)[0], said
        said += os.read(descriptor, 1 << 16)
    return said


def test_an_upload_tells_that_it_is_storing_and_ends_with_an_interrupt(
    slow, s3_store, started, command, large
):
    """The plugin accepts everything at once, and sends it when the file is closed."""
    there = s3_store.uri("transfers/interrupted")
    child = started(s3_store, "cp", "-", there)
    child.communicate(b"as it was", timeout=_PATIENCE_S)
    ours, terminals = os.openpty()
    try:
        child = started(slow, "cp", large, there, stderr=terminals)
        said_by(ours, b"storing 1 file for 1 s")
        interrupted = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.wait(_PATIENCE_S) == 130
        took = time.monotonic() - interrupted
        said = said_by(ours, b"its store had all")
    finally:
        os.close(ours)
        os.close(terminals)

    assert took < _SOON_S
    assert f"modular-tf: {there}: the copy was given up".encode() in said
    assert command(s3_store, "cp", there, "-")[0] == b"as it was"


def test_the_upload_of_an_interrupted_close_goes_on(slow, run_subject):
    """In Python: Ctrl-C ends the wait, and the end of the service waits for the data."""
    run_subject(
        slow,
        """
        import os, signal, threading
        size = 1_000_000
        file = fs.open(uri("python"), "wb")
        file.write(bytes(size))
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            file.close()
            raise AssertionError("nothing interrupted it")
        except KeyboardInterrupt as interrupt:
            notes = getattr(interrupt, "__notes__", ["is still being stored"])
            assert "is still being stored" in notes[0], notes
        expect(file.closed, False)
        expect_error(errors.NotFoundError, fs.stat, uri("python"))
        file.close()
        expect(fs.stat(uri("python")).length, size)

        def write(mode, data):
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                with fs.open(uri(mode), mode) as file:
                    file.write(data)
            except KeyboardInterrupt:
                pass
            # Nobody has the file any more; its end has not waited for the upload.

        for mode, data in (("wb", bytes(size)), ("w", "x" * size)):
            write(mode, data)
            expect_error(errors.NotFoundError, fs.stat, uri(mode))
        fs.close()
        with mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]]) as again:
            again.load()
            for mode in ("wb", "w"):
                expect(again.filesystem_for(base).stat(uri(mode)).length, size)
        """,
        folder="interrupted",
    )
