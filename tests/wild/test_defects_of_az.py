"""The known defects of the Azure filesystem of tensorflow-io, with and without workarounds."""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import partial

import pytest

from tests.emulators.faults import FaultDraw, FaultSettings
from tests.fixtures.emulators import proxied

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

RENAME_TO_ITSELF = """
put("file", b"content")
fs.rename_file(uri("file"), uri("file"))
expect(get("file"), b"content")
"""


def test_az_exception_leaves_c(azure_store, run_subject):
    code = """
        nowhere = base.replace("/fixture", "/no-such-container")
        kind = getattr(errors, sys.argv[1])
        error = expect_error(kind, fs.get_children, f"{nowhere}/directory")
        error = error.__cause__ or error
        print(error)
        put("file", b"lives")
        expect(get("file"), b"lives")
        """
    run_subject(azure_store, code, "NotFoundError", folder="exception")
    raw = run_subject(
        azure_store, code, "InternalError", folder="exception", without="*,not_found_message"
    )
    assert "a C++ exception left the plugin: 404" in raw.stdout


def test_az_copy_never_ends(azure_store, run_subject):
    run_subject(
        azure_store,
        """
        content = bytes(range(256)) * 20000
        put("from", content)
        fs.copy_file(uri("from"), uri("to"))
        expect(get("to", 0, 10_000_000) == content, True)
        """,
        folder="copy",
    )
    raw = run_subject(
        azure_store,
        """
        import os, threading
        put("from")
        copy = threading.Thread(target=fs.copy_file, args=(uri("from"), uri("to")), daemon=True)
        copy.start()
        copy.join(3)
        print("copies for ever" if copy.is_alive() else "done", flush=True)
        os._exit(0)
        """,
        folder="copy-raw",
        without="*",
    )
    assert raw.stdout == "copies for ever\n"


def test_az_missing_paths_are_directories(azure_store, run_subject):
    code = """
        worked_around = sys.argv[1] == "worked_around"
        put("directory/file")
        expect(fs.is_directory(uri("directory")), True)
        expect(fs.path_exists(uri("directory")), worked_around)
        if worked_around:
            for ask in (fs.stat, fs.is_directory, fs.get_file_size, fs.get_children, get,
                        fs.delete_file, fs.delete_dir, fs.new_random_access_file):
                expect_error(FileNotFoundError, ask, uri("missing"))
            expect_error(errors.FailedPreconditionError, fs.delete_dir, uri("directory"))
            expect(fs.get_children(uri("directory")), ["file"])
        else:
            expect(fs.stat(uri("missing")).is_directory, True)
            expect_error(errors.InternalError, fs.get_file_size, uri("missing"))
        """
    run_subject(azure_store, code, "worked_around", folder="missing")
    run_subject(azure_store, code, "raw", folder="missing", without="*,not_found_message")


def test_renames_reach_another_container(azure_store, run_subject):
    run_subject(
        azure_store,
        """
        other = base.split("/fixture")[0] + "/other-container"
        fs.create_dir(other)
        put("file", b"moves")
        fs.rename_file(uri("file"), f"{other}/moved")
        expect((fs.path_exists(uri("file")), fs.get_children(other)), (False, ["moved"]))
        """,
        folder="containers",
    )


def test_az_append_truncates(azure_store, run_subject):
    code = """
        put("file", b"before")
        with fs.new_appendable_file(uri("file")) as file:
            if sys.argv[1] == "beforeafter":
                expect(file.tell(), 6)
            file.append(b"after")
        expect(get("file").decode(), sys.argv[1])
        if sys.argv[1] == "beforeafter":
            with fs.new_read_only_memory_region_from_file(uri("file")) as region:
                expect(bytes(region.view()), b"beforeafter")
        """
    run_subject(azure_store, code, "beforeafter", folder="append")
    run_subject(azure_store, code, "after", folder="append-raw", without="*")


def test_az_time_counts_from_year_one(azure_store, run_subject):
    code = """
        import time
        put("file")
        changed = fs.stat(uri("file")).mtime_nsec / 1e9
        print("now" if abs(changed - time.time()) < 60 else "nonsense")
        """
    worked_around = run_subject(azure_store, code, folder="time")
    raw = run_subject(azure_store, code, folder="time", without="*")
    assert (worked_around.stdout, raw.stdout) == ("now\n", "nonsense\n")


def test_az_delete_takes_siblings_along(azure_store, run_subject):
    code = """
        put("a/file")
        put("ab")
        put("ac/file")
        if sys.argv[1] == "ab ac":
            fs.delete_file(uri("a/file"))
            fs.recursively_create_dir(uri("a"))
        fs.delete_dir(uri("a"))
        expect(" ".join(fs.get_children(base) if fs.path_exists(base) else []), sys.argv[1])
        put("b/file")
        put("bb")
        fs.delete_recursively(uri("b"))
        if sys.argv[1] == "ab ac":
            expect(fs.get_children(base), ["ab", "ac", "bb"])
        """
    run_subject(azure_store, code, "ab ac", folder="siblings")
    # The plugin gets the name of the directory without a slash then.
    run_subject(azure_store, code, "", folder="siblings-raw", without="*")


def test_az_rename_to_itself_deletes(azure_store, run_subject):
    run_subject(azure_store, RENAME_TO_ITSELF, folder="itself")
    run_subject(azure_store, RENAME_TO_ITSELF, folder="itself", without="rename_file")


def test_az_forgets_descriptors(azure_store, run_subject):
    code = """
        import os
        def used():
            return len(os.listdir("/proc/self/fd"))
        put("warm")
        before = used()
        kept = fs.new_writable_file(uri("kept"))
        kept.append(b"first ")
        for number in range(20):
            put(f"file-{number}")
        kept.append(b"last")
        kept.close()
        expect(get("kept"), b"first last")
        print("kept open" if used() - before >= 20 else "closed")
        """
    worked_around = run_subject(azure_store, code, folder="descriptors")
    raw = run_subject(azure_store, code, folder="descriptors", without="*,writer_type")
    assert (worked_around.stdout, raw.stdout) == ("closed\n", "kept open\n")


def test_az_cleanup_stores(azure_store, run_subject):
    code = """
        put("file", b"as it was")
        writer = fs.new_writable_file(uri("file"))
        writer.append(b"half of it")
        writer.discard()
        expect(get("file").decode(), sys.argv[1])
        """
    run_subject(azure_store, code, "as it was", folder="cleanup")
    raw = {"folder": "cleanup-raw", "without": "*"}
    run_subject(azure_store, code, "half of it", **raw)


def test_az_refusals_stall(azure_store, run_subject):
    """What the store would refuse is not asked: forty refusals, and no wait of ten seconds."""
    run_subject(
        azure_store,
        """
        container = base.rsplit("/", 1)[0]
        put("file")
        for _ in range(10):
            expect_error(FileExistsError, fs.create_dir, container)
            expect_error(FileExistsError, fs.create_dir, base)
            expect_error(FileNotFoundError, fs.rename_file, uri("missing"), uri("target"))
            expect_error(FileNotFoundError, fs.delete_file, uri("missing"))
        """,
        folder="refusals",
        timeout=25,
    )


def test_az_hangs_after_fork(azure_store, run_subject):
    """A forked child ends, with its own status; without the workaround it waits for ever."""
    code = """
        import select, time
        put("file", b"before")
        reading, writing = os.pipe()
        time.sleep(0.5)  # until the thread of the plugin waits for work
        child = os.fork()
        if not child:
            os.close(reading)
            expect(get("file"), b"before")
            print("flushed")
            sys.exit(7)  # which closes the pipe
        os.close(writing)
        ended = bool(select.select([reading], [], [], float(sys.argv[1]))[0])
        if not ended:
            os.kill(child, 9)
        status = os.waitpid(child, 0)[1]
        expect(os.waitstatus_to_exitcode(status), 7 if ended else -9)
        put("parent")
        print("ended" if ended else "hangs")
        """
    worked_around = run_subject(azure_store, code, "30", folder="fork")
    assert worked_around.stdout == "flushed\nended\n"
    raw = run_subject(azure_store, code, "3", folder="fork", without="after_fork_in_child")
    assert raw.stdout == "flushed\nhangs\n"


# The request for the bytes is held, and another client changes the file meanwhile.
_CHANGED_WITHIN_A_READ = """
    import threading, time

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
