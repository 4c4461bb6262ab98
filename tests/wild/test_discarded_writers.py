"""A file that is given up before it is closed leaves a store as it was, or nothing torn."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.wild.conftest import STORES

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_what_is_discarded_is_not_stored(object_store, run_subject):
    run_subject(
        object_store,
        """
        put("f", b"as it was")
        for path in ("f", "new"):
            writer = fs.new_writable_file(uri(path))
            writer.append(b"half of it")
            writer.discard()
            writer.close()
        expect(get("f"), b"as it was")
        expect(fs.path_exists(uri("new")), False)
        expect_error(errors.ClosedError, writer.append, b"more")
        service.close()
        """,
        folder="discarded",
    )


def test_a_copy_whose_source_breaks_off_leaves_the_target_as_it_was(object_store, run_subject):
    run_subject(
        object_store,
        """
        from modular_tf.filesystem.copying import copy_through
        from modular_tf.filesystem.files import RandomAccessFile

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
        expect_error(
            errors.UnavailableError, copy_through, source, "broken://h/f", fs, uri("f")
        )
        expect(get("f"), b"as it was")
        """,
        folder="broken-off",
    )


_FACES = """
from modular_tf.fsspec import filesystem_class
from modular_tf.gfile import GFile

faces = filesystem_class(base.partition(":")[0])(service=service)
OPENERS = {
    "file": lambda path: fs.new_writable_file(uri(path)),
    "append": lambda path: fs.new_appendable_file(uri(path)),
    "stream": lambda path: fs.open(uri(path), "wb"),
    "text": lambda path: fs.open(uri(path), "w"),
    "raw": lambda path: fs.open(uri(path), "wb", 0),
    "gfile": lambda path: GFile(uri(path), "wb", service=service),
    "fsspec": lambda path: faces.open(uri(path), "wb"),
}

def write(file, data):
    if hasattr(file, "append"):
        file.append(data)
    else:
        file.write(data.decode() if hasattr(file, "encoding") else data)
"""


@pytest.mark.parametrize("size", [9, 200_000])
def test_what_an_exception_leaves_is_not_stored(size, object_store, run_subject):
    subject = """
        import sys

        for name, opener in OPENERS.items():
            for path in ("f", "new"):
                put("f", b"as it was")
                try:
                    with opener(path) as file:
                        write(file, bytes(int(sys.argv[1])))
                        raise KeyboardInterrupt
                except KeyboardInterrupt:
                    pass
                expect((name, get("f")), (name, b"as it was"))
                expect((name, fs.path_exists(uri("new"))), (name, False))
        service.close()
        expect(sys.argv[2], "as it was")
        """
    code = f"{_FACES}\n{dedent(subject)}"
    run_subject(object_store, code, str(size), "as it was", folder=f"exceptions-{size}")


def test_a_codec_that_is_not_known_costs_no_content(object_store, run_subject):
    run_subject(
        object_store,
        """
        put("f", b"as it was")
        expect_error(LookupError, fs.open, uri("f"), "w", -1, "no-such-codec")
        expect_error(ValueError, fs.open, uri("f"), "w", -1, None, None, "no newline")
        expect(get("f"), b"as it was")
        """,
        folder="codecs",
    )


def test_an_append_that_is_interrupted_keeps_the_old_bytes(object_store, run_subject):
    """A signal at many moments: the file is as it was, or whole, never a piece of it."""
    run_subject(
        object_store,
        """
        import gc, signal, time

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
        for step in range(16):
            put("f", old)
            try:
                signal.setitimer(signal.ITIMER_REAL, took * (step + 0.5) / 16)
                append()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stopped:
                gc.collect()
            found = fs.read_file(uri("f"))
            # What was being stored may come later, and be what the next one appends to.
            expect((step, found[: len(old)] == old), (step, True))
            expect((step, found[len(old) :].replace(b"new", b"")), (step, b""))
        service.close()
        """,
        folder="interrupted",
        timeout=240,
    )


@pytest.mark.parametrize("store", ["az", "gs", "oss"])
@pytest.mark.parametrize("what", ["fails", "ends"])
def test_an_append_whose_old_bytes_do_not_come_whole_stores_nothing(
    store, what, request, run_subject
):
    run_subject(
        request.getfixturevalue(STORES[store]),
        """
        import gc, sys
        from modular_tf.filesystem.files import RandomAccessFile

        class Part(RandomAccessFile):
            def __init__(self, file):
                self.uri, self.file = file.uri, file

            def known_length(self):
                return fs.get_file_size(self.uri)

            def readinto(self, offset, buffer):
                if offset < 9 << 20:
                    return self.file.readinto(offset, buffer)
                if sys.argv[1] == "fails":
                    raise errors.UnavailableError("it broke off")
                return 0

            def close(self):
                self.file.close()

        old = bytes(range(256)) * (20 << 12)
        put("f", old)
        whole = fs.new_random_access_file
        fs.new_random_access_file = lambda path: Part(whole(path))
        expect_error(errors.ModularTFError, fs.new_appendable_file, uri("f"))
        fs.new_random_access_file = whole
        gc.collect()
        expect(get("f", n=len(old) + 1) == old, True)
        """,
        what,
        folder=f"{what}-old-bytes",
    )


def test_a_write_that_failed_stores_nothing(object_store, run_subject):
    subject = """
        import io

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
            for step in (lambda: write(file, bytes(8 << 20)), file.close):
                try:
                    step()
                except errors.ResourceExhaustedError as error:
                    failures.append(error)
            fs.new_writable_file = made
            expect((name, len(failures), get("f")), (name, 2, b"as it was"))
        """
    run_subject(object_store, f"{_FACES}\n{dedent(subject)}", folder="failed")


_LEFT = """
import gc, sys

gc.disable()
SIZE = 8 << 20  # more than any buffer holds

def raising(raised):
    def pass_point(frame, event, function):
        if event == "c_return" and function.__name__ in ("mtf_writer_append", "pwrite"):
            raise raised
    return pass_point

def leave(file, raised):
    # Write to a file and leave it open, with the write interrupted or failed where an exception
    # is given.
    if raised is not None:
        sys.setprofile(raising(raised))
    try:
        write(file, bytes(SIZE))
    except type(raised):
        pass
    finally:
        sys.setprofile(None)

RAISED = {
    "healthy": None,
    "interrupted": KeyboardInterrupt(),
    "failed": errors.ResourceExhaustedError("no space left"),
}[sys.argv[1]]
"""


@pytest.mark.parametrize("how", ["healthy", "interrupted", "failed"])
def test_a_file_that_nobody_closed_is_stored_unless_it_lacks_bytes(how, object_store, run_subject):
    subject = """
        for name, opener in OPENERS.items():
            put("f", b"as it was")
            file = opener("f")
            leave(file, RAISED)
            RAISED = RAISED and RAISED.with_traceback(None)
            del file
            gc.collect()
            expect((name, get("f")[-9:]), (name, b"as it was" if RAISED else bytes(9)))
        """
    code = f"{_FACES}\n{_LEFT}\n{dedent(subject)}"
    run_subject(object_store, code, how, folder=f"collected-{how}", timeout=120)


@pytest.mark.parametrize("how", ["healthy", "interrupted", "failed"])
def test_the_end_of_a_service_stores_what_is_open_unless_it_lacks_bytes(
    how, object_store, run_subject
):
    subject = """
        files = []
        for name, opener in OPENERS.items():
            put(name, b"as it was")
            files.append(opener(name))
            leave(files[-1], RAISED)
        try:
            service.close()
        except errors.ResourceExhaustedError:
            expect(sys.argv[1], "failed")
        service = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]], bundled=False)
        service.load(os.environ["WILD_PLUGIN"])
        fs = service.filesystem_for(base)
        for name in OPENERS:
            expect((name, get(name)[-9:]), (name, b"as it was" if RAISED else bytes(9)))
        """
    code = f"{_FACES}\n{_LEFT}\n{dedent(subject)}"
    run_subject(object_store, code, how, folder=f"ended-{how}", timeout=120)


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

def left_by_exception(write):
    # Return what the store has, and whether that is new, when a write was left by its exception.
    put("f", b"as it was")
    expect_error(ArithmeticError, write)
    gc.collect()
    return get("f") != b"as it was"
"""


def test_what_is_written_in_a_block_of_the_file_is_given_up(s3_store, run_subject):
    """Whatever stands on top of the file: the exception goes by its own `with` block."""
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

        for write in (csv, compressed, archive, opened_by_uri):
            expect((write.__name__, left_by_exception(write)), (write.__name__, False))
        """
    run_subject(s3_store, f"{_FRAME}\n{dedent(subject)}", folder="own-block")


def test_what_others_close_is_stored_though_an_exception_leaves_it(s3_store, run_subject):
    """They close the file as after success; no rule knows these closes from others.

    An exception is under way in the closes of an `except` block too, which have to store.
    """
    subject = """
        def opened_by_fsspec():
            with fsspec.open(uri("f"), "wb") as file:
                file.write(b"half")
                broken_off()

        def compressed():
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

        for write in (opened_by_fsspec, compressed, csv_by_uri, closed_in_the_end):
            expect((write.__name__, left_by_exception(write)), (write.__name__, True))

        file = faces.open(uri("f"), "wb")
        try:
            broken_off()
        except ArithmeticError:
            file.write(b"instead")
            file.close()
        expect(get("f"), b"instead")
        """
    run_subject(s3_store, f"{_FRAME}\n{dedent(subject)}", folder="closed-by-others")
