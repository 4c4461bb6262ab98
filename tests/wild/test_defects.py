"""The known defects of published stores, each with the host's workarounds and without.

With them the programs of a store run one after the other in one process, each in a folder of its
own. Without them each has a process of its own, and shows that the plugin has the defect.
"""

from __future__ import annotations

import dataclasses
import http.server
import itertools
import json
import signal
import threading
from functools import partial
from typing import NamedTuple

import pytest

from tests.emulators.faults import FaultDraw, FaultSettings
from tests.fixtures.emulators import NO_PROXY, Store, proxied
from tests.fixtures.matrices import sampled
from tests.wild.conftest import STORES

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_PATTERN = bytes(range(256)) * ((10 << 20) // 256)
_SINGLE_REQUESTS = (("S3_DISABLE_MULTI_PART_DOWNLOAD", "1"),)  # as the host sets it
# Without the host's functions the plugin does not get that variable from the host either.
_UNGUARDED = "guarded_functions,prepare_environment"


class Defect(NamedTuple):
    """A program that works where the host works around a defect, which `worked_around` says.

    Attributes:
        program: The program.
        without: Workarounds that are left out to show the defect; "" where that is not shown.
        status: How the process ends without them.
        environment: Variables of that process.
    """

    program: str
    without: str = "*"
    status: int = 0
    environment: tuple[tuple[str, str], ...] = ()


_RENAME_TO_ITSELF = Defect(
    """
    put("file", b"content")
    fs.rename_file(uri("file"), uri("file"))
    expect(get("file"), b"content")
    """,
    without="",
)
_AFTER_A_FAILURE = Defect(
    """
    for _ in range(2):
        expect_error(FileNotFoundError, get, "missing")
        put("file", b"content")
        expect(get("file"), b"content")
        expect([fs.path_exists(uri(name)) for name in ("missing", "file")], [False, True])
        fs.delete_file(uri("file"))
        expect(fs.path_exists(uri("file")), False)
    """,
    without="",
)
_RANGES = """
    pattern = bytes(range(256)) * ((10 << 20) // 256)
    for offset, n in ((0, 5), (6, 100), (5_000_000, 77), (10_485_700, 1000), (20_000_000, 5)):
        expect(get("big", offset, n) == pattern[offset:offset + n], True)
    with fs.new_random_access_file(uri("big")) as file:
        expect(file.read(0, 20 << 20) == pattern, True)
        expect(file.read(9_000_000, 2_000_000) == pattern[9_000_000:], True)
        expect(file.read(3, 4), bytes([3, 4, 5, 6]))
    expect([get("small", 2, 3), get("small", 7, 1), get("empty")], [b"nte", b"", b""])
    with fs.open(uri("big"), "rb") as stream:
        stream.seek(-256, 2)
        expect(stream.read() == pattern[:256], True)
    """

DEFECTS = {
    "s3": {
        "s3-exit-without-cleanup": Defect(
            """
            put("file")
            if not worked_around:
                ctypes.CDLL(None).exit(0)  # past Python's end, so nothing of ours runs
            """,
            without="an orderly end",
            status=-signal.SIGABRT,
        ),
        "s3-empty-read": Defect(
            """
            put("file", b"content")
            expect(get("file", 0, 0), b"")
            with fs.new_random_access_file(uri("file")) as file:
                target = bytearray(b"untouched")
                expect(file.readinto(3, memoryview(target)[:0]), 0)
                expect(bytes(target), b"untouched")
            """,
            without="",
        ),
        "s3-empty-file-not-created": Defect(
            """
            fs.new_writable_file(uri("empty")).close()
            expect(fs.path_exists(uri("empty")), worked_around)
            if worked_around:
                expect((fs.get_file_size(uri("empty")), get("empty")), (0, b""))
                expect_error(errors.InvalidArgumentError, fs.new_read_only_memory_region_from_file,
                             uri("empty"))
            """,
            without="_created",
        ),
        "s3-missing-paths-succeed": Defect(
            """
            missing = uri("nowhere")
            if worked_around:
                for ask in (fs.delete_file, fs.delete_dir, fs.get_children, fs.get_file_size):
                    expect_error(FileNotFoundError, ask, missing)
                expect_error(FileNotFoundError, fs.rename_file, missing, uri("target"))
                put("directory/file")
                for ask in (fs.get_file_size, fs.delete_dir):
                    expect_error(errors.FailedPreconditionError, ask, uri("directory"))
                expect(fs.get_children("s3://fixture"), fs.get_children("s3://fixture/"))
            else:
                for ask in (fs.delete_file, fs.delete_dir, fs.get_children):
                    ask(missing)
                expect_error(errors.InvalidArgumentError, fs.get_children, "s3://fixture")
            """
        ),
        "s3-rename-takes-siblings-along": Defect(
            """
            for name in ("a", "ab", "ad/c"):
                put(name, name.encode())
            fs.rename_file(uri("a"), uri("x"))
            expect(fs.get_children(base), ["ab", "ad", "x"] if worked_around else ["x", "xb", "xd"])
            if worked_around:
                expect((get("x"), get("ab"), get("ad/c")), (b"a", b"ab", b"ad/c"))
                fs.new_writable_file(uri("empty")).close()
                fs.rename_file(uri("empty"), uri("still-empty"))
                expect(get("still-empty"), b"")
            """
        ),
        "status-must-arrive-ok": _AFTER_A_FAILURE,
        "s3-read-behind-the-end": Defect(
            """
            from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

            put("file", b"content")
            with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
                expect([file.read(7, 10), file.read(0, 10)], [b"", b"content"])
            for name, content in (("empty", b""), ("file", b"content")):
                with fs.open(uri(name), "wb") as stream:
                    stream.write(content)
                at = ((0, 100), (3, 2), (len(content), 10), (len(content) + 100, 10))
                expect([get(name, *one) for one in at], [content, content[3:5], b"", b""])
                with fs.open(uri(name), "rb") as stream:
                    expect(stream.read(), content)
                with fs.open(uri(name), "ab") as stream:
                    stream.write(b" and more")
                fs.copy_file(uri(name), uri("copy"))
                expect([get(name), get("copy")], [content + b" and more"] * 2)
            """,
            without=_UNGUARDED,
            status=-signal.SIGSEGV,
            environment=_SINGLE_REQUESTS,
        ),
        "s3-hangs-after-fork": Defect(
            """
            put("file", b"before")
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                put("child", b"after")
                os.write(writing, get("file") + get("child"))
                os._exit(0)
            ended = bool(select.select([reading], [], [], 30 if worked_around else 3)[0])
            expect(ended, worked_around)
            if ended:
                expect(os.read(reading, 100), b"beforeafter")
            else:
                os.kill(child, 9)
            os.waitpid(child, 0)
            put("parent")
            """,
            without="after_fork_in_child",
        ),
    },
    "distant_s3": {
        "s3-error-without-element": Defect(
            """
            from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

            set_up(oddities="bare errors")
            put("file", b"<?xml?>")  # which is no error
            with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
                expect(file.read(0, 10), b"<?xml?>")
            with PluginFilesystem.new_random_access_file(fs, uri("nothing")) as file:
                expect_error(errors.NotFoundError, file.read, 0, 10)
            expect_error(errors.NotFoundError, fs.read_file, uri("nothing"))
            set_up(oddities="")
            """,
            without=_UNGUARDED,
            status=-signal.SIGSEGV,
            environment=_SINGLE_REQUESTS,
        ),
        "s3-longer-answer": Defect(
            """
            from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

            put("file", bytes([1]) * 900)
            set_up(oddities="whole objects")
            memory = bytearray(1000)
            with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
                expect_error(errors.InternalError, file.readinto, 0, memoryview(memory)[:10])
            set_up(oddities="")
            expect(memory.count(1), 10 if worked_around else 900)
            """,
            without=_UNGUARDED,
            environment=_SINGLE_REQUESTS,
        ),
    },
    "az": {
        "az-exception-leaves-c": Defect(
            """
            nowhere = base.replace("/fixture", "/no-such-container")
            kind = errors.NotFoundError if worked_around else errors.InternalError
            error = expect_error(kind, fs.get_children, f"{nowhere}/directory")
            if not worked_around:
                thrown = "a C++ exception left the plugin: 404"
                expect(thrown in str(error.__cause__ or error), True)
            put("file", b"lives")
            expect(get("file"), b"lives")
            """,
            without="*,not_found_message",
        ),
        "az-copy-never-ends": Defect(
            """
            content = bytes(range(256)) * 20000
            put("from", content)
            copied = fs.copy_file, (uri("from"), uri("to"))
            copy = threading.Thread(target=copied[0], args=copied[1], daemon=True)
            copy.start()
            copy.join(60 if worked_around else 3)
            expect(copy.is_alive(), not worked_around)
            if not worked_around:
                os._exit(0)
            expect(get("to", 0, 10_000_000) == content, True)
            """
        ),
        "az-missing-paths-are-directories": Defect(
            """
            put("directory/file")
            expect(fs.is_directory(uri("directory")), True)
            expect(fs.path_exists(uri("directory")), worked_around)
            if worked_around:
                for ask in (fs.stat, fs.is_directory, fs.get_file_size, fs.get_children, fs.open,
                            fs.delete_file, fs.delete_dir, fs.new_random_access_file):
                    expect_error(FileNotFoundError, ask, uri("missing"))
                expect_error(errors.FailedPreconditionError, fs.delete_dir, uri("directory"))
                expect(fs.get_children(uri("directory")), ["file"])
                other = base.split("/fixture")[0] + "/other-container"
                fs.create_dir(other)
                fs.rename_file(uri("directory/file"), f"{other}/moved")
                expect(fs.path_exists(uri("directory/file")), False)
                expect(fs.get_children(other), ["moved"])
            else:
                expect(fs.stat(uri("missing")).is_directory, True)
                expect_error(errors.InternalError, fs.get_file_size, uri("missing"))
            """,
            without="*,not_found_message",
        ),
        "az-append-truncates": Defect(
            """
            put("file", b"before")
            with fs.new_appendable_file(uri("file")) as file:
                if worked_around:
                    expect(file.tell(), 6)
                file.append(b"after")
            expect(get("file"), b"beforeafter" if worked_around else b"after")
            if worked_around:
                with fs.new_read_only_memory_region_from_file(uri("file")) as region:
                    expect(bytes(region.view()), b"beforeafter")
            """
        ),
        "az-time-counts-from-year-one": Defect(
            """
            put("file")
            changed = fs.stat(uri("file")).mtime_nsec / 1e9
            expect(abs(changed - time.time()) < 60, worked_around)
            """
        ),
        "az-delete-takes-siblings-along": Defect(
            # Without the host the plugin gets the name of the directory without a slash.
            """
            for name in ("a/file", "ab", "ac/file"):
                put(name)
            if worked_around:
                fs.delete_file(uri("a/file"))
                fs.recursively_create_dir(uri("a"))
            fs.delete_dir(uri("a"))
            left = fs.get_children(base) if fs.path_exists(base) else []
            expect(left, ["ab", "ac"] if worked_around else [])
            put("b/file")
            put("bb")
            fs.delete_recursively(uri("b"))
            if worked_around:
                expect(fs.get_children(base), ["ab", "ac", "bb"])
            """
        ),
        "az-rename-to-itself-deletes": _RENAME_TO_ITSELF,
        "az-forgets-descriptors": Defect(
            """
            put("warm")
            before = len(os.listdir("/proc/self/fd"))
            kept = fs.new_writable_file(uri("kept"))
            kept.append(b"first ")
            for number in range(20):
                put(f"file-{number}")
            kept.append(b"last")
            kept.close()
            expect(get("kept"), b"first last")
            expect(len(os.listdir("/proc/self/fd")) - before < 20, worked_around)
            """,
            without="*,writer_type",
        ),
        "az-cleanup-stores": Defect(
            """
            put("file", b"as it was")
            writer = fs.new_writable_file(uri("file"))
            writer.append(b"half of it")
            writer.discard()
            expect(get("file"), b"as it was" if worked_around else b"half of it")
            """
        ),
        # What the store would refuse is not asked: each of the refusals would wait for ten seconds.
        "az-refusals-stall": Defect(
            """
            container = base.rsplit("/", 1)[0]
            put("file")
            began = time.monotonic()
            for _ in range(10):
                expect_error(FileExistsError, fs.create_dir, container)
                expect_error(FileExistsError, fs.create_dir, base)
                expect_error(FileNotFoundError, fs.rename_file, uri("missing"), uri("target"))
                expect_error(FileNotFoundError, fs.delete_file, uri("missing"))
            expect(time.monotonic() - began < 60, True)
            """,
            without="",
        ),
        "az-hangs-after-fork": Defect(
            """
            put("file", b"before")
            reading, writing = os.pipe()
            time.sleep(0.5)  # until the thread of the plugin waits for work
            child = os.fork()
            if not child:
                os.close(reading)
                expect(get("file"), b"before")
                sys.exit(7)  # which closes the pipe
            os.close(writing)
            ended = bool(select.select([reading], [], [], 30 if worked_around else 3)[0])
            expect(ended, worked_around)
            if not ended:
                os.kill(child, 9)
            expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7 if ended else -9)
            put("parent")
            """,
            without="after_fork_in_child",
        ),
    },
    "gs": {
        "gs-unset-environment-crashes": Defect(
            """
            put("file", b"content")
            expect(get("file"), b"content")
            found = service.plugins()[0].warnings
            expect({warning.rule for warning in found}, {"LD-056"})
            warnings = [warning.message for warning in found]
            expect(warnings[0], "'gs': GCS_READ_CACHE_BLOCK_SIZE_MB was set to '0', from '16'")
            expect(warnings[1], "'gs': GCS_APPEND_MODE was unset, from 'compose'")
            """,
            without="defaults",
            status=-signal.SIGSEGV,
        ),
        # Not shown without the workaround: it breaks the heap.
        "gs-large-reads-overflow": Defect(
            """
            content = os.urandom(8 << 20)
            put("file", content)
            expect(get("file", 0, 16 << 20) == content, True)
            expect(get("file", 131_000, 200_000) == content[131_000:331_000], True)
            with fs.new_read_only_memory_region_from_file(uri("file")) as region:
                expect(region.view() == content, True)
            """,
            without="",
        ),
        "gs-append-by-compose": Defect(
            """
            def append(data):
                with fs.new_appendable_file(uri("file")) as file:
                    file.append(data)
            put("file", b"before")
            if worked_around:
                append(b"after")
                expect(get("file"), b"beforeafter")
            else:
                expect_error(errors.FailedPreconditionError, append, b"after")
            """,
            without="forbidden,new_appendable_file",
        ),
        "gs-directories-end-in-slash": Defect(
            """
            put("directory/file")
            put("file")
            expect(fs.get_children(base), ["directory", "file"])
            expect(sorted(fs.listed_names(base)), ["directory/", "file"])
            """,
            without="",
        ),
        "gs-directories-do-not-exist": Defect(
            """
            put("directory/file")
            expect(fs.path_exists(uri("directory")), worked_around)
            if worked_around:
                for ask in (fs.get_children, fs.delete_dir, fs.new_random_access_file):
                    expect_error(FileNotFoundError, ask, uri("missing"))
                fs.rename_file(uri("directory"), uri("moved"))
                expect((get("moved/file"), fs.path_exists(uri("directory"))), (b"data", False))
                expect(fs.get_children("gs://fixture"), fs.get_children("gs://fixture/"))
            else:
                expect(fs.get_children(uri("missing")), [])
                fs.delete_dir(uri("missing"))
                fs.new_random_access_file(uri("missing")).close()
            """
        ),
        "status-must-arrive-ok": _AFTER_A_FAILURE,
    },
    "oss": {
        "oss-short-read-is-ok": Defect(
            """
            put("file", b"content")
            if worked_around:
                at = ((4, 100), (7, 5), (100, 5))
                expect([get("file", *one) for one in at], [b"ent", b"", b""])
                with fs.new_appendable_file(uri("file")) as file:
                    expect(file.tell(), 7)
                    file.append(b"more")
                    expect(file.tell(), 11)
                expect_error(ValueError, file.tell)
                expect(get("file"), b"contentmore")
                expect(fs.stat(uri("file")).mtime_nsec, 0)
            else:
                expect_error(NotImplementedError, fs.new_appendable_file, uri("file"))
                expect(fs.stat(uri("file")).mtime_nsec, -2**63)
            """
        ),
        "oss-prefixes-exist": Defect(
            """
            put("directory/file")
            expect(fs.path_exists(uri("direc")), not worked_around)
            expect(fs.stat(uri("directory")).is_directory, worked_around)
            if worked_around:
                expect_error(FileNotFoundError, fs.delete_file, uri("missing"))
                fs.rename_file(uri("directory"), uri("moved"))
                expect((fs.get_children(base), get("moved/file")), (["moved"], b"data"))
            else:
                fs.delete_file(uri("missing"))
            """
        ),
        "oss-rename-to-itself-deletes": _RENAME_TO_ITSELF,
        "oss-delete-takes-siblings-along": Defect(
            """
            for directory in (base, uri("a"), uri("ab")):
                fs.create_dir(directory)
            for name in ("a/file", "ab/file", "ac"):
                put(name)
            fs.delete_recursively(uri("a"))
            expect(fs.get_children(base), ["ab", "ac"] if worked_around else [])
            """
        ),
        "oss-empty-file-cannot-be-closed": Defect(
            """
            import modular_tf.filesystem.plugin_filesystem as plain
            kind = errors.UnimplementedError if worked_around else errors.NotFoundError
            reason = "cannot write a file of no bytes" if worked_around else "404 object not exists"
            put("file", b"content")
            for path in ("new", "file"):
                error = expect_error(kind, fs.new_writable_file(uri(path)).close)
                expect(reason in str(error), True)
            expect((fs.get_children(base), get("file")), (["file"], b"content"))
            if worked_around:  # one of somebody else: the plugin copies what makes up a directory
                fs.recursively_create_dir(uri("directory"))
                plain.PluginFilesystem.copy_file(fs, uri("directory/"), uri("empty"))
                expect((fs.stat(uri("empty")).length, get("empty")), (0, b""))
                fs.copy_file(uri("empty"), uri("copied"))
                fs.rename_file(uri("empty"), uri("moved"))
                expect(fs.get_children(base), ["copied", "directory", "file", "moved"])
                expect((get("copied"), get("moved")), (b"", b""))
            """,
            without="writer_type",
        ),
    },
    "http": {
        "reads-of-parts": Defect(_RANGES, without=""),
        "http-leaks-descriptors": Defect(
            """
            import resource
            before = len(os.listdir("/proc/self/fd"))
            with fs.new_random_access_file(uri("big")) as file:
                for offset in range(0, 10 << 20, 100_000):
                    file.read(offset, 10_000)
            expect(len(os.listdir("/proc/self/fd")) - before < 40, worked_around)
            if worked_around:  # and a clear refusal before the process has none left
                resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
                def exhaust():
                    for _ in range(200):
                        get("big", 0, 1)
                refusal = str(expect_error(errors.ResourceExhaustedError, exhaust))
                expect("file descriptors" in refusal, True)
                with open(os.devnull):
                    pass
            """,
            without="*,require",
        ),
    },
    "http_store_without_ranges": {
        "reads-of-parts": Defect(_RANGES, without=""),
        "http-server-ignores-range": Defect(
            """
            expect(get("small", 2, 100), b"ntent" if worked_around else b"content")
            """
        ),
    },
}
_ENVIRONMENTS = {"gs": {"GCS_READ_CACHE_BLOCK_SIZE_MB": "16", "GCS_APPEND_MODE": "compose"}}
_SHOWN = {
    name: store for store, rows in DEFECTS.items() for name, row in rows.items() if row.without
}


@pytest.fixture
def store_of(request):
    """Return what returns a store of the table, with the files that are read from the web."""

    def made(name):
        store = request.getfixturevalue(STORES.get(name, name))
        if name == "distant_s3":  # a program that crashes leaves its oddities
            request.addfinalizer(partial(store.set, oddities=""))
        for row in DEFECTS[name] if store.folder is not None else ():
            folder = store.folder / row
            folder.mkdir(exist_ok=True)
            for file, content in (("big", _PATTERN), ("small", b"content"), ("empty", b"")):
                (folder / file).write_bytes(content)
        return store

    return made


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_worked_around(name, store_of, run_subject):
    programs = {row: defect.program for row, defect in DEFECTS[name].items()}
    run_subject(store_of(name), programs, env=_ENVIRONMENTS.get(name))


@pytest.mark.parametrize(
    "name",
    sampled(_SHOWN, ["az-append-truncates", "gs-unset-environment-crashes", "s3-longer-answer"]),
)
def test_without_its_workaround_a_defect_shows(name, store_of, run_subject):
    store = _SHOWN[name]
    defect = DEFECTS[store][name]
    env = {**_ENVIRONMENTS.get(store, {}), **dict(defect.environment)}
    folder = name if store.startswith("http") else f"{name}-raw"
    how = {"without": defect.without, "status": defect.status}
    run_subject(store_of(store), defect.program, folder=folder, env=env, **how)


# ---- Defects that need a server, or an end of the service, of their own ----


def test_s3_cleanup_ends_all(s3_store, run_subject):
    """The plugin starts its SDK at the first call; what is not ended aborts the process."""
    code = """
        put("file", b"one")
        other = begin()
        other_fs = other.filesystem_for(base)
        for step in (service.close, other.close):
            expect(other_fs.path_exists(uri("file")), True)
            step()
        again = begin()
        expect(again.filesystem_for(base).path_exists(uri("file")), True)
        again.close()
        first, last = begin(), begin()
        first_fs, last_fs = first.filesystem_for(base), last.filesystem_for(base)
        expect(first_fs.path_exists(uri("file")), True)
        first.close()
        last.close()  # which ends what another has started
        """
    run_subject(s3_store, code, folder="cleanup")
    aborted = -signal.SIGABRT
    raw = run_subject(s3_store, code, folder="cleanup", without="shares_init", status=aborted)
    assert "GetHttpClientFactory" in raw.stderr


def test_s3_cleanup_overtakes_threads(s3_store, run_subject):
    """When cleanup comes, no thread of the plugin is still letting go of what it has sent.

    Without the wait about one process in four aborts, and that only where freeing takes long, as
    with AddressSanitizer.
    """
    run_subject(
        s3_store,
        """
        from modular_tf.filesystem.workarounds import s3
        from modular_tf.filesystem.workarounds.s3 import wait_until_idle

        waited = []

        def wait(patience_s):
            is_open = [fs.path_exists(uri("file"))]
            waited.append(wait_until_idle(patience_s))
            expect(is_open, [True])

        s3.wait_until_idle = wait
        for _ in range(5):
            put("file", bytes(300_000))
        service.close()
        expect(waited, [True])
        """,
        folder="overtaken",
    )


def test_where_the_function_is_global_the_plugin_keeps_its_own_way(
    s3_store, run_subject, run_python
):
    """A name that is global comes before ours: then nothing is read where nothing may be there."""
    code = """
        expect("S3_DISABLE_MULTI_PART_DOWNLOAD" in os.environ, False)
        put("file", b"content")
        expect((get("file"), fs.read_file(uri("file"))), (b"content", b"content"))
        expect(get("file", 7, 10), b"")
        """
    env = {"LD_PRELOAD": "libstdc++.so.6"}
    run_subject(s3_store, code, folder="global", env=env, run_child=run_python)


# The request for the bytes is held, and another client changes the file meanwhile.
_CHANGED_WITHIN_A_READ = """
    def read():
        try:
            results.append(eval(call))
        except errors.ModularTFError as error:
            results.append(error)

    for old, new in ((b"old." * 100, b"new." * 3), (b"old." * 3, b"new." * 100)):
        for call in sys.argv[1:]:
            put("file", old)
            results, before = [], requests_now().get("GET range", 0)
            set_up(held="GET range")
            reading = threading.Thread(target=read)
            reading.start()
            while requests_now().get("GET range", 0) == before:
                time.sleep(0.01)
            put("file", new)
            set_up(held="")
            reading.join()
            [found] = results
            print("new" if found == new else "old" if found == old else repr(found)[:60])
    """


def test_az_counts_before_reading(azure_store, run_subject, tmp_path):
    whole = "fs.read_file(uri('file'))"
    opened = "fs.new_random_access_file(uri('file')).read(0, 400)"
    part = "fs.read_range(uri('file'), 0, 4 * 3)"
    with proxied(azure_store, tmp_path) as proxy:
        run = partial(run_subject, proxy, _CHANGED_WITHIN_A_READ, folder="counted")
        found = run(whole, opened, part).stdout.splitlines()
        raw = run(whole, without="*").stdout.splitlines()
    assert [found[0], found[1], found[3], found[4]] == ["new"] * 4
    assert {found[2], found[5]} <= {"new", "b'new.new.new.'"}
    assert ["b'new." in line for line in raw] == [True, True]


def a_lost_answer():
    """Return settings with which the first request is done without an answer, the next with one."""
    for seed in itertools.count():
        settings = FaultSettings(seed=seed, chance=0.5, faults="reset", longest_run=1)
        draw = FaultDraw()
        first, second = draw.next("/", settings), draw.next("/", settings)
        if first.name and first.is_done and not second.name:
            return {**dataclasses.asdict(settings), "kind": "DELETE"}
    raise AssertionError


def test_az_deletes_twice(azure_store, run_subject, tmp_path):
    code = """
        lost = json.loads(sys.argv[1])
        for work in (lambda: fs.delete_file(uri("file")),
                     lambda: fs.rename_file(uri("file"), uri("other"))):
            put("file", b"content")
            set_up(chance=0.0, seed=-1)
            put("drawn")
            fs.delete_file(uri("drawn"))  # a request of the kind: the draw begins anew
            set_up(**lost)
            work()
            expect(fs.path_exists(uri("file")), False)
        expect(get("other"), b"content")
        """
    with proxied(azure_store, tmp_path) as proxy:
        run = partial(run_subject, proxy, code, json.dumps(a_lost_answer()), folder="deletes")
        run()
        raw = run(without="*", status=1)
    assert "NotFoundError: delete_file" in raw.stderr


@pytest.fixture
def counting_server():
    """A web server that counts requests, and spells the header as HTTP/2 does."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.headers.get("Range"))
            if self.path != "/file":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("content-length", "7")
            self.end_headers()
            self.wfile.write(b"content")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        yield Store(url, url, NO_PROXY), requests
        server.shutdown()


def test_http_stat_fetches_everything(counting_server, run_subject):
    store, requests = counting_server
    run_subject(
        store,
        """
        expect((fs.stat(uri("file")).length, fs.get_file_size(uri("file"))), (7, 7))
        expect((fs.path_exists(uri("file")), fs.is_directory(uri("file"))), (True, False))
        """,
    )
    assert len(requests) == 2  # one for stat, whose length is missed, and one to measure

    run_subject(
        store,
        """
        for ask in (fs.stat, fs.get_file_size, fs.is_directory, fs.new_random_access_file, fs.open,
                    fs.new_read_only_memory_region_from_file):
            expect_error(FileNotFoundError, ask, uri("missing"))
        for nothing in ("", "http://"):
            expect_error(FileNotFoundError, fs.stat, nothing)
            expect_error(FileNotFoundError, fs.new_random_access_file, nothing)
        expect((fs.path_exists(uri("missing")), fs.path_exists("")), (False, False))
        with fs.new_read_only_memory_region_from_file(uri("file")) as region:
            expect(bytes(region.view()), b"content")
        expect_error(NotImplementedError, put, "file")
        """,
    )
    code = "expect_error(errors.InvalidArgumentError, fs.stat, uri('file'))"
    run_subject(store, code, without="stat")
    code = "expect_error(errors.InternalError, fs.new_random_access_file, '')"
    run_subject(store, code, without="not_found_message")
