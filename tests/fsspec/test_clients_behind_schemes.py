"""Clients that others wrote, behind a scheme of ours, at an emulated store."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.emulators.conversation import ask
from tests.fixtures.clients import S3_CLIENTS as MAKE
from tests.fixtures.clients import client_libraries, with_places


@pytest.mark.emulator
@pytest.mark.parametrize("client", MAKE)
def test_files_are_read_and_directories_renamed(client, s3_store, run_python):
    subject = """
        import modular_tf as mtf
        from modular_tf import gfile

        FILES = {"a": b"1" * 1000, "sub/b": b"2", "sub/deep/c": b"3"}
        mtf.default_service().register_filesystem("mine", fs)
        base = f"mine://fixture/{client}"
        for old in ("d", "m[1]"):
            gfile.makedirs(f"{base}/{old}/sub/deep")
            for name, data in FILES.items():
                with gfile.GFile(f"{base}/{old}/{name}", "wb") as file:
                    file.write(data)
            gfile.rename(f"{base}/{old}", f"{base}/new-{old[0]}")
            assert not gfile.exists(f"{base}/{old}/a"), old
            assert not gfile.exists(f"{base}/{old}/sub/deep/c"), old
            for name, data in FILES.items():
                with gfile.GFile(f"{base}/new-{old[0]}/{name}", "rb") as file:
                    assert file.read() == data, (old, name)
                with gfile.GFile(f"{base}/new-{old[0]}/{name}", "rb") as file:
                    assert file.read(1) == data[:1], (old, name)
    """
    names = f"endpoint, client = {s3_store.endpoint!r}, {client!r}"
    code = "\n".join(map(dedent, (names, MAKE[client], subject)))
    run_python(code, env={**s3_store.environment, **_with_client(client)}, timeout=120)


@pytest.mark.emulator
def test_directories_that_s3_has_marked_are_moved_and_deleted(s3_store, run_python):
    """As the console of Amazon makes them; s3fs makes and removes none."""
    for key in ("marks/", "marks/a", "marks/sub/", "marks/sub/b", "empty/", "with-empty/in/"):
        data = b"" if key.endswith("/") else b"x"
        assert ask("PUT", f"{s3_store.endpoint}/fixture/{key}", data).status == 200
    assert ask("PUT", f"{s3_store.endpoint}/fixture/with-empty/a", b"x").status == 200
    subject = """
        import modular_tf as mtf
        from modular_tf import errors

        mtf.default_service().register_filesystem("mine", fs)
        mine, base = mtf.default_service().filesystem("mine"), "mine://fixture"
        mine.rename_file(f"{base}/marks", f"{base}/moved")
        mine.delete_dir(f"{base}/empty")
        assert not any(mine.path_exists(f"{base}/{name}") for name in ("marks", "empty"))
        assert mine.read_file(f"{base}/moved/sub/b") == b"x"
        try:
            mine.rename_file(f"{base}/with-empty", f"{base}/elsewhere")
        except errors.FailedPreconditionError as error:
            assert "with-empty/in" in str(error), error
        else:
            raise AssertionError("an empty directory is lost")
        assert mine.get_children(f"{base}/with-empty") == ["a", "in"]
        assert not mine.path_exists(f"{base}/elsewhere")
    """
    code = "\n".join(map(dedent, (f"endpoint = {s3_store.endpoint!r}", MAKE["s3fs"], subject)))
    run_python(code, env={**s3_store.environment, **_with_client("s3fs")}, timeout=120)


def _with_client(client, *places):
    return with_places(
        *([] if "pyarrow" in client else [client_libraries("store-clients")]), *places
    )


STORED = """
    from urllib.request import Request, urlopen

    def stored(key, data=None):
        headers = {"Authorization": "AWS nobody:signature", "Content-Type": "bytes"}
        url = f"{endpoint}/fixture/{key}"
        method = "GET" if data is None else "PUT"
        return urlopen(Request(url, data, headers, method=method)).read()
"""
"""What the store has, without any of the clients."""

KEYS = (
    "slashes/a//b",
    "beside/a",
    "beside//b",
    "both/two",
    "both/two/child",
    "marked/",
    "marked/a",
)
SAID = {
    "slashes": "keys with '//'",
    "beside": "keys with '//'",
    "both": "'two' is a file and a dir",
}


@pytest.mark.emulator
@pytest.mark.parametrize("client", MAKE)
def test_what_no_path_leads_to_is_named(client, s3_store, run_python, tmp_path):
    top = f"fixture/{client}"
    signed = {"Authorization": "AWS nobody:signature"}

    for key in KEYS:
        data = b"" if key.endswith("/") else key.encode()
        assert ask("PUT", f"{s3_store.endpoint}/{top}/{key}", data).status == 200

    def is_there(key):
        return ask("GET", f"{s3_store.endpoint}/{top}/{key}", headers=signed).status == 200

    _install_hook(tmp_path, f"endpoint = {s3_store.endpoint!r}\n{dedent(MAKE[client])}")
    environment = {**s3_store.environment, **_with_client(client, tmp_path)}
    code = """
        import sys
        from modular_tf.cli.main import run

        for words in sys.argv[1:]:
            print(f"== {words}", file=sys.stderr)
            print("status:", int(run(["fs", *words.split()])), file=sys.stderr)
    """
    shown = {}
    for folder in (*SAID, "marked"):
        uri, target = f"mine://{top}/{folder}", tmp_path / folder
        words = [f"ls {uri}", f"du {uri}", f"cp -r {uri} {target}", f"sync {uri} {target}-too"]
        if folder in SAID:
            words.append(f"rm -r {uri}")
        for part in run_python(code, *words, env=environment).stderr.split("== ")[1:]:
            shown[part.split()[0], folder] = part

    for (verb, folder), said in shown.items():
        if verb == "rm":  # a client removes all that its store has, or fails
            left = [key for key in KEYS if key.startswith(f"{folder}/") and is_there(key)]
            assert ("status: 1" in said) == bool(left), (said, left)
        elif folder == "marked" or (verb, folder) == ("ls", "slashes"):
            assert "status: 0" in said
        else:
            assert "status: 1" in said
            # The error of obstore itself names a path with "//".
            is_obstores = client.startswith("obstore") and "//" in said.split("\n", 1)[1]
            assert SAID[folder] in said or is_obstores


def _install_hook(folder, code):
    """Write a distribution that brings the scheme `mine`, as its module `brings_mine` says."""
    hook = """
        from modular_tf.hookspecs import hookimpl

        @hookimpl
        def modular_tf_filesystems():
            return {"mine": fs}
    """
    (folder / "brings_mine.py").write_text(code + dedent(hook))
    facts = folder / "brings_mine-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: brings-mine\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[modular_tf.hooks]\nmine = brings_mine\n")


@pytest.mark.emulator
@pytest.mark.parametrize("size", [9, 12 << 20])
@pytest.mark.parametrize("client", ["s3fs", "obstore.fsspec", "obstore", "pyarrow"])
def test_what_is_given_up_is_not_stored(client, size, s3_store, run_python):
    """In a `with` block that an exception leaves, and where nobody closed what lacks bytes."""
    subject = """
        import gc, os, sys
        import modular_tf as mtf
        from modular_tf import errors, gfile

        SIZE = int(sys.argv[1])
        mtf.default_service().register_filesystem("mine", fs)
        mine = mtf.default_service().filesystem("mine")
        uri = f"mine://fixture/given-up-{client}-{SIZE}"
        OPENERS = {
            "file": lambda: mine.new_writable_file(uri),
            "stream": lambda: mine.open(uri, "wb"),
            "text": lambda: mine.open(uri, "w"),
            "raw": lambda: mine.open(uri, "wb", 0),
            "gfile": lambda: gfile.GFile(uri, "wb"),
        }

        def write(file, data):
            if hasattr(file, "append"):
                file.append(data)
            else:
                file.write(data.decode() if hasattr(file, "encoding") else data)

        def raising(frame, event, function):
            ended = {"return": frame.f_code, "c_return": function}.get(event)
            if ended is not None and ended is file_write:
                raise KeyboardInterrupt

        if "fs" in client:
            file_write = type(fs.open("fixture/other", "wb")).write.__code__
        else:
            file_write = os.pwrite
        for name, opener in OPENERS.items():
            for how in ("exception", "interrupted", "healthy"):
                stored(f"given-up-{client}-{SIZE}", b"as it was")
                if how == "exception":
                    try:
                        with opener() as file:
                            write(file, bytes(SIZE))
                            raise KeyboardInterrupt
                    except KeyboardInterrupt:
                        pass
                else:
                    file = opener()
                    sys.setprofile(raising if how == "interrupted" else None)
                    try:
                        write(file, bytes(SIZE))
                        how = "healthy"  # of a buffer that holds all of it nothing was written
                    except KeyboardInterrupt:
                        pass
                    sys.setprofile(None)
                del file
                gc.collect()
                found = stored(f"given-up-{client}-{SIZE}")
                is_kept = found == b"as it was"
                assert is_kept == (how != "healthy"), (name, how, found[:9])
        # A thread of obstore that is at work at the end of Python may abort the process.
        os._exit(0)
    """
    names = f"endpoint, client = {s3_store.endpoint!r}, {client!r}"
    code = "\n".join(map(dedent, (names, MAKE[client], STORED, subject)))
    environment = {**s3_store.environment, **_with_client(client)}
    run_python(code, str(size), env=environment, timeout=120)


@pytest.mark.emulator
@pytest.mark.parametrize("client", MAKE)
def test_a_client_may_keep_what_it_is_given(client, s3_store, run_python):
    """obstore sends it after its `write` has returned."""
    subject = """
        import hashlib
        import modular_tf as mtf

        mtf.default_service().register_filesystem("mine", fs)
        mine = mtf.default_service().filesystem("mine")
        sent, buffer = hashlib.sha256(), bytearray(11 << 20)
        with mine.new_writable_file(f"mine://fixture/kept-{client}") as file:
            for number in range(1, 7):
                buffer[:] = bytes([number]) * len(buffer)
                sent.update(buffer)
                file.append(buffer)
        found = stored(f"kept-{client}")
        assert hashlib.sha256(found).digest() == sent.digest(), {*found}
    """
    names = f"endpoint, client = {s3_store.endpoint!r}, {client!r}"
    code = "\n".join(map(dedent, (names, MAKE[client], STORED, subject)))
    run_python(code, env={**s3_store.environment, **_with_client(client)}, timeout=120)


@pytest.mark.emulator
@pytest.mark.parametrize("client", sorted(set(MAKE) - {"pyarrow.by.fsspec"}))
def test_a_long_read_is_made_by_several_requests_at_once(client, distant_s3, run_python):
    subject = """
        from threading import Thread
        import modular_tf as mtf

        data = bytes(range(256)) * (20 << 12)
        mtf.default_service().register_filesystem("mine", fs)
        ours = mtf.default_service().filesystem("mine")
        uri = f"mine://fixture/long-{client}"
        with ours.new_writable_file(uri) as file:
            file.append(data)
        target = bytearray(len(data) + 5)
        with ours.new_random_access_file(uri) as file:
            assert file.read(0, len(data) + 5) == data
            thread = Thread(target=lambda: file.readinto(0, target))
            thread.start()
            thread.join()
        assert target == data + bytes(5)
    """
    names = f"endpoint, client = {distant_s3.endpoint!r}, {client!r}"
    code = "\n".join(map(dedent, (names, MAKE[client], subject)))
    distant_s3.set(delay_s=0.2)
    distant_s3.forget_requests()

    run_python(code, env={**distant_s3.environment, **_with_client(client)}, timeout=120)

    assert distant_s3.requests()["GET range"] == 2 * 3
    assert distant_s3.most_at_once() >= 3
