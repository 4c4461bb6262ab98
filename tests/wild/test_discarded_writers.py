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
