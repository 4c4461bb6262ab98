"""A file that is given up before it is closed leaves a store as it was, or nothing torn."""

from __future__ import annotations

from textwrap import dedent

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_FACES = """
import gc, io, signal, time
from modular_tf.filesystem.copying import copy_through
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.fsspec import filesystem_class
from modular_tf.gfile import GFile

SCHEME = base.partition(":")[0]
OPENERS = {
    "file": lambda path: fs.new_writable_file(uri(path)),
    "append": lambda path: fs.new_appendable_file(uri(path)),
    "stream": lambda path: fs.open(uri(path), "wb"),
    "text": lambda path: fs.open(uri(path), "w"),
    "raw": lambda path: fs.open(uri(path), "wb", 0),
    "gfile": lambda path: GFile(uri(path), "wb", service=service),
    "fsspec": lambda path: filesystem_class(SCHEME)(service=service).open(uri(path), "wb"),
}
SIZE = 8 << 20  # more than any buffer holds
HOW = {
    "healthy": None,
    "interrupted": KeyboardInterrupt,
    "failed": errors.ResourceExhaustedError,
}

def write(file, data):
    if hasattr(file, "append"):
        file.append(data)
    else:
        file.write(data.decode() if hasattr(file, "encoding") else data)

def leave(file, how):
    "Write to a file and leave it open, with the write interrupted or failed, or healthy."

    def pass_point(frame, event, function):
        if event == "c_return" and function.__name__ in ("mtf_writer_append", "pwrite"):
            raise HOW[how]("while it was written")

    if how != "healthy":
        sys.setprofile(pass_point)
    try:
        write(file, bytes(SIZE))
    except (KeyboardInterrupt, errors.ResourceExhaustedError):
        assert how != "healthy"
    finally:
        sys.setprofile(None)

def renew():
    "Close the service, and go on with another."
    global service, fs
    try:
        service.close()
    finally:
        service = begin()
        fs = service.filesystem_for(base)
"""

_PROGRAMS = {
    "discarded": """
        put("f", b"as it was")
        for path in ("f", "new"):
            writer = fs.new_writable_file(uri(path))
            writer.append(b"half of it")
            writer.discard()
            writer.close()
        expect_error(errors.ClosedError, writer.append, b"more")
        for _ in range(2):
            expect(get("f"), b"as it was")
            expect(fs.path_exists(uri("new")), False)
            renew()
        """,
    "source-breaks-off": """
        class Source:
            def new_random_access_file(self, path):
                return File()

        class File(RandomAccessFile):
            uri = "broken://h/f"

            def readinto(self, offset, buffer):
                if offset:
                    raise errors.UnavailableError("it broke off")
                return len(buffer)

            def close(self):
                pass

        put("f", b"as it was")
        service.register_filesystem("broken", Source())
        source = service.filesystem("broken")
        broken = source, "broken://h/f", fs, uri("f")
        expect_error(errors.UnavailableError, copy_through, *broken)
        expect(get("f"), b"as it was")
        """,
    "exceptions": """
        for size in (9, 200_000):
            for name, opener in OPENERS.items():
                for path in ("f", "new"):
                    put("f", b"as it was")
                    try:
                        with opener(path) as file:
                            write(file, bytes(size))
                            raise KeyboardInterrupt
                    except KeyboardInterrupt:
                        pass
                    expect((name, get("f")), (name, b"as it was"))
                    expect((name, fs.path_exists(uri("new"))), (name, False))
        """,
    "codecs": """
        put("f", b"as it was")
        expect_error(LookupError, fs.open, uri("f"), "w", -1, "no-such-codec")
        expect_error(ValueError, fs.open, uri("f"), "w", -1, None, None, "no newline")
        expect(get("f"), b"as it was")
        """,
    "failed-writes": """
        class Full(fs.new_writable_file(uri("f")).__class__):
            __slots__ = ()

            def append(self, data):
                raise errors.ResourceExhaustedError("no space left")

        def full(path):
            file = made(path)
            file.append(b"half")
            file.__class__ = Full
            return file

        made = fs.new_writable_file
        for name in ("stream", "text", "raw", "gfile", "fsspec"):
            put("f", b"as it was")
            fs.new_writable_file = full
            file = OPENERS[name]("f")
            failures = []
            for step in (lambda: write(file, bytes(SIZE)), file.close):
                try:
                    step()
                except errors.ResourceExhaustedError as error:
                    failures.append(error)
            fs.new_writable_file = made
            expect((name, len(failures), get("f")), (name, 2, b"as it was"))
        """,
    # A signal at many moments: the file is as it was, or whole, never a piece of it.
    "interrupted-appends": """
        class Stopped(BaseException):
            pass

        def stop(*_):
            raise Stopped

        def append():
            with fs.new_appendable_file(uri("f")) as file:
                file.append(b"new")

        signal.signal(signal.SIGALRM, stop)
        old = bytes(range(256)) * (8 << 12)
        put("f", old)
        began = time.monotonic()
        append()
        took = time.monotonic() - began
        STEPS = 8
        for step in range(STEPS):
            put("f", old)
            try:
                signal.setitimer(signal.ITIMER_REAL, took * (step + 0.5) / STEPS)
                append()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stopped:
                gc.collect()
            found = fs.read_file(uri("f"))
            # What was being stored may come later, and be what the next one appends to.
            expect((step, found[: len(old)] == old), (step, True))
            expect((step, found[len(old) :].replace(b"new", b"")), (step, b""))
        renew()
        """,
    "old-bytes": """
        class Part(RandomAccessFile):
            def __init__(self, file):
                self.uri, self.file = file.uri, file

            def known_length(self):
                return fs.get_file_size(self.uri)

            def readinto(self, offset, buffer):
                if offset < 9 << 20:
                    return self.file.readinto(offset, buffer)
                if how == "fails":
                    raise errors.UnavailableError("it broke off")
                return 0

            def close(self):
                self.file.close()

        old = bytes(range(256)) * (20 << 12)
        whole = fs.new_random_access_file
        for how in ("fails", "ends") if SCHEME != "s3" else ():
            put("f", old)
            fs.new_random_access_file = lambda path: Part(whole(path))
            expect_error(errors.ModularTFError, fs.new_appendable_file, uri("f"))
            fs.new_random_access_file = whole
            gc.collect()
            expect(get("f", n=len(old) + 1) == old, True)
        """,
    # What nobody closed is stored unless it lacks bytes.
    "collected": """
        gc.disable()
        for how in HOW:
            for name, opener in OPENERS.items():
                put("f", b"as it was")
                file = opener("f")
                leave(file, how)
                del file
                gc.collect()
                stored = bytes(9) if how == "healthy" else b"as it was"
                expect((how, name, get("f")[-9:]), (how, name, stored))
        """,
    "end-of-service": """
        for how in HOW:
            files = []
            for name, opener in OPENERS.items():
                put(name, b"as it was")
                files.append(opener(name))
                leave(files[-1], how)
            try:
                renew()
            except errors.ResourceExhaustedError:
                expect(how, "failed")
            for name in OPENERS:
                stored = bytes(9) if how == "healthy" else b"as it was"
                expect((how, name, get(name)[-9:]), (how, name, stored))
        """,
}


def test_what_is_given_up_or_lacks_bytes_is_not_stored(object_store, run_subject):
    run_subject(object_store, {"": _FACES, **_PROGRAMS}, folder="given-up", timeout=280)


_FRAME = """
import gc, gzip, zipfile
import fsspec
import pandas as pd

class Broken:
    def __str__(self):
        raise ArithmeticError("no text")

def broken_off():
    raise ArithmeticError("it broke off")

mtf.fsspec.register(service, warn=False)
faces = fsspec.filesystem(base.partition(":")[0])
bad = pd.DataFrame({"a": ["x" * 99] * 2000 + [Broken()]})

def is_stored(write):
    "Return whether the store has something new when a write was left by its exception."
    put("f", b"as it was")
    expect_error(ArithmeticError, write)
    gc.collect()
    return get("f") != b"as it was"
"""


def test_what_is_written_in_a_block_of_the_file_is_given_up_and_what_others_close_is_stored(
    s3_store, run_subject
):
    """Whatever stands on top of the file: the exception goes by the file's own `with` block.

    Others close the file as after success; no rule knows these closes from others. An exception is
    under way in the closes of an `except` block too, which have to store.
    """
    subject = """
        def csv():
            with faces.open(uri("f"), "wb") as file:
                bad.to_csv(file)

        def compressed():
            with faces.open(uri("f"), "wb") as file, gzip.GzipFile(fileobj=file, mode="w") as top:
                top.write(b"half")
                broken_off()

        def archive():
            with faces.open(uri("f"), "wb") as file, zipfile.ZipFile(file, "w") as top:
                top.writestr("name", b"half")
                broken_off()

        def opened_by_uri():
            with fsspec.open(uri("f"), "wb").open() as file:
                file.write(b"half")
                broken_off()

        def opened_by_fsspec():
            with fsspec.open(uri("f"), "wb") as file:
                file.write(b"half")
                broken_off()

        def compressed_by_fsspec():
            with fsspec.open(uri("f"), "wb", compression="gzip") as file:
                file.write(b"half")
                broken_off()

        def csv_by_uri():
            bad.to_csv(uri("f"))

        def closed_in_the_end():
            file = faces.open(uri("f"), "wb")
            try:
                file.write(b"half")
                broken_off()
            finally:
                file.close()

        for write in (csv, compressed, archive, opened_by_uri):
            expect((write.__name__, is_stored(write)), (write.__name__, False))
        for write in (opened_by_fsspec, compressed_by_fsspec, csv_by_uri, closed_in_the_end):
            expect((write.__name__, is_stored(write)), (write.__name__, True))

        file = faces.open(uri("f"), "wb")
        try:
            broken_off()
        except ArithmeticError:
            file.write(b"instead")
            file.close()
        expect(get("f"), b"instead")
        """
    run_subject(s3_store, f"{_FRAME}\n{dedent(subject)}", folder="blocks")
