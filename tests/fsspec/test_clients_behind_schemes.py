"""Clients that others wrote, behind a scheme of ours, at an emulated S3.

The bodies of tests run in forks of an interpreter with the client, which serves the scheme `mine`
there.
"""

from __future__ import annotations

import gc
import hashlib
import inspect
import os
from contextlib import suppress
from textwrap import dedent

import pytest

import modular_tf as mtf
from modular_tf import errors, gfile
from modular_tf.fsspec import ModularFileSystem
from tests.emulators.conversation import ask
from tests.fixtures.clients import S3_CLIENTS, client_libraries, with_places
from tests.fixtures.forked_children import with_body
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

pytestmark = pytest.mark.emulator

IMPORTS = {
    "s3fs": "s3fs, aiobotocore.session",
    "obstore": "obstore.store",
    "obstore.fsspec": "obstore.fsspec",
    "pyarrow": "pyarrow.fs",
    "pyarrow.by.fsspec": "pyarrow.fs, fsspec.implementations.arrow",
}
SIGNED = {"Authorization": "AWS nobody:signature"}


SAMPLE = "s3fs", "obstore", "pyarrow"  # one of each kind of client


def of_clients(*names, but=(), sample=SAMPLE):
    """Run a test for each client, and all tests of a client in one worker."""

    def marks(name):
        beyond = [] if name in sample else [BEYOND_THE_SAMPLE]
        return [pytest.mark.xdist_group(f"client {name}"), *beyond]

    chosen = [name for name in names or S3_CLIENTS if name not in but]
    rows = [pytest.param(name, marks=marks(name)) for name in chosen]
    return pytest.mark.parametrize("client", rows, indirect=True)


@pytest.fixture
def client(request):
    return request.param


@pytest.fixture
def do(client, distant_s3, fork_server, tmp_path):
    """Run the body of a test of this module in a fork of an interpreter with the client."""
    libraries = [] if "pyarrow" in client else [client_libraries("store-clients")]
    environment = {
        **distant_s3.environment,
        **with_places(*libraries),
        "TESTS_ENDPOINT": distant_s3.endpoint,
    }
    server = fork_server(f"import {IMPORTS[client]}, {__name__}", environment)

    def run(test):
        given = repr(client) if "client" in inspect.signature(test).parameters else ""
        code = f"from {__name__} import *; serve({client!r}); {test.__name__}.body({given})"
        # A thread of obstore that is at work at the end of Python may abort the process.
        code += "; import os; os._exit(0)"
        done = server.run(code, folder=tmp_path, environment=environment, timeout=120)
        assert done.returncode == 0, (done.returncode, done.stderr)

    return run


def with_the_client(test):
    return with_body(test, lambda _, do: do(test), "do")


def stored(key, data=None):
    """Return what the store has, or put it there; without any of the clients."""
    url = f"{os.environ['TESTS_ENDPOINT']}/fixture/{key}"
    answer = ask("GET" if data is None else "PUT", url, data, headers=SIGNED)
    assert data is None or answer.status == 200, answer
    return answer.body


def asked():
    """Return the store's counts since this was called last."""
    url = f"{os.environ['TESTS_ENDPOINT']}/-/requests"
    found = ask("GET", url).json()
    ask("DELETE", url)
    return found


def serve(client):
    made = {"endpoint": os.environ["TESTS_ENDPOINT"]}
    exec(dedent(S3_CLIENTS[client]), made)
    mtf.default_service().register_filesystem("mine", made["fs"])


def mine():
    return mtf.default_service().filesystem("mine")


def by_fsspec():
    return ModularFileSystem("mine", service=mtf.default_service())


# ---- the tests ----


@of_clients()
@with_the_client
def test_files_are_read_and_directories_renamed(client):
    files = {"a": b"1" * 1000, "sub/b": b"2", "sub/deep/c": b"3"}
    base = f"mine://fixture/{client}"
    for old in ("d", "m[1]"):
        gfile.makedirs(f"{base}/{old}/sub/deep")
        for name, data in files.items():
            with gfile.GFile(f"{base}/{old}/{name}", "wb") as file:
                file.write(data)
        gfile.rename(f"{base}/{old}", f"{base}/new-{old[0]}")
        assert not gfile.exists(f"{base}/{old}/a"), old
        assert not gfile.exists(f"{base}/{old}/sub/deep/c"), old
        for name, data in files.items():
            for length in (1000, 1):
                with gfile.GFile(f"{base}/new-{old[0]}/{name}", "rb") as file:
                    assert file.read(length) == data[:length], (old, name)


KEYS = (
    *("slashes/a//b", "beside/a", "beside//b", "both/two", "both/two/child", "marked/"),
    "marked/a",
)
NAMED = {
    "slashes": "keys with '//'",
    "beside": "keys with '//'",
    "both": "'two' is a file and a dir",
}


@of_clients()
@with_the_client
def test_what_no_path_leads_to_is_named(client):
    top = f"fixture/{client}-odd"
    for key in KEYS:
        stored(f"{client}-odd/{key}", b"" if key.endswith("/") else key.encode())
    by_fsspec().get(f"{top}/marked", "marked", recursive=True)
    for folder, named in NAMED.items():
        with pytest.raises(errors.ModularTFError) as caught:
            by_fsspec().get(f"{top}/{folder}", folder, recursive=True)
        # The error of obstore itself names a path with "//".
        message = str(caught.value)
        assert named in message or (client.startswith("obstore") and "//" in message), message
        try:  # a client removes all that its store has, or fails
            is_removed = not any(mine().delete_recursively(f"mine://{top}/{folder}"))
        except errors.ModularTFError:
            is_removed = False
        below = [key for key in KEYS if key.startswith(f"{folder}/")]
        left = [key for key in below if stored(f"{client}-odd/{key}") == key.encode()]
        assert is_removed == (not left), (folder, left)


OPENERS = {
    "file": lambda uri: mine().new_writable_file(uri),
    "stream": lambda uri: mine().open(uri, "wb"),
    "text": lambda uri: mine().open(uri, "w"),
    "raw": lambda uri: mine().open(uri, "wb", 0),
    "gfile": lambda uri: gfile.GFile(uri, "wb"),
}


def write_to(file, data):
    if hasattr(file, "append"):
        file.append(data)
    else:
        file.write(data.decode() if hasattr(file, "encoding") else data)


@of_clients(but=["pyarrow.by.fsspec"])
@with_the_client
def test_what_is_given_up_is_not_stored(client):
    """In a `with` block that an exception leaves; what nobody closes is stored."""
    key = f"given-up-{client}"
    uri = f"mine://fixture/{key}"
    for size, opener in (*((9, one) for one in OPENERS), (12 << 20, "file")):
        stored(key, b"as it was")
        with suppress(KeyboardInterrupt), OPENERS[opener](uri) as file:
            write_to(file, bytes(size))
            raise KeyboardInterrupt
        del file
        gc.collect()
        assert stored(key) == b"as it was", (size, opener)
        file = OPENERS[opener](uri)
        write_to(file, bytes(size))
        del file
        gc.collect()
        assert stored(key) == bytes(size), (size, opener)


@of_clients()
@with_the_client
def test_a_client_may_keep_what_it_is_given(client):
    """obstore sends it after its `write` has returned."""
    sent, buffer = hashlib.sha256(), bytearray(11 << 20)
    with mine().new_writable_file(f"mine://fixture/kept-{client}") as file:
        for number in range(1, 4):
            buffer[:] = bytes([number]) * len(buffer)
            sent.update(buffer)
            file.append(buffer)
    found = stored(f"kept-{client}")
    assert hashlib.sha256(found).digest() == sent.digest(), {*found}


COUNT = 1200  # two pages of a listing


@pytest.fixture(scope="module")
def many_objects(distant_s3):
    for number in range(COUNT):
        key = f"{distant_s3.endpoint}/fixture/many/f{number:04}"
        assert ask("PUT", key, b"x" * number).status == 200


# What obstore.fsspec lists has no time of modification.
@of_clients(but=["obstore.fsspec"], sample=["s3fs"])
@pytest.mark.usefixtures("many_objects")
@with_the_client
def test_no_object_is_asked_for_its_size():
    fs = by_fsspec()
    sizes = {f"fixture/many/f{number:04}": number for number in range(COUNT)}
    asked()
    for face, call in {
        "ls": lambda: {one["name"]: one["size"] for one in fs.ls("fixture/many")},
        "find": lambda: {k: e["size"] for k, e in fs.find("fixture/many", detail=True).items()},
        "gfile.walk": lambda: {
            f"{top}/{name}".removeprefix("mine://"): sizes[f"fixture/many/{name}"]
            for top, _, names in gfile.walk("mine://fixture/many")
            for name in names
        },
    }.items():
        assert call() == sizes, face
        requests = asked()["requests"]
        assert sum(requests.values()) <= 9, (face, requests)
    some = fs.ls("fixture/many")[7]
    stat = fs.filesystem.stat("mine://" + some["name"])
    assert (some["size"], some["mtime_ns"] // 10**9) == (stat.length, stat.mtime_nsec // 10**9)


@of_clients()
@with_the_client
def test_a_change_by_others_and_an_own_one_are_seen(client):
    top = f"changing-{client}"
    root = f"mine://fixture/{top}"

    def seen():
        names = gfile.listdir(root)
        assert [name for _, _, files in gfile.walk(root) for name in files] == names
        return {name: gfile.stat(f"{root}/{name}").length for name in names}

    stored(f"{top}/a", b"1")
    assert seen() == {"a": 1}
    stored(f"{top}/a", b"22")
    assert gfile.stat(f"{root}/a").length == 2
    stored(f"{top}/b", b"")
    assert gfile.exists(f"{root}/b")
    assert seen() == {"a": 2, "b": 0}
    with gfile.GFile(f"{root}/a", "wb") as file:
        file.write(b"4444")
    assert gfile.stat(f"{root}/a").length == 4
    with gfile.GFile(f"{root}/a", "rb") as file:
        assert file.read() == b"4444"
    gfile.remove(f"{root}/b")
    assert seen() == {"a": 4}
