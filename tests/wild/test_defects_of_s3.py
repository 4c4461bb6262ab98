"""The known defects of the S3 filesystem of tensorflow-io, with and without workarounds."""

from __future__ import annotations

import signal

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_s3_exit_without_cleanup(s3_store, run_subject):
    """The plugin aborts the process when its cleanup did not run; ours runs before the end."""
    run_subject(s3_store, "put('file')", folder="exit")

    child = run_subject(
        s3_store,
        """
        import ctypes
        put("file")
        ctypes.CDLL(None).exit(0)  # past Python's end, so nothing of ours runs
        """,
        folder="exit",
        status=-signal.SIGABRT,
    )
    assert "pure virtual method called" in child.stderr


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


def test_s3_empty_read(s3_store, run_subject):
    run_subject(
        s3_store,
        """
        put("file", b"content")
        expect(get("file", 0, 0), b"")
        with fs.new_random_access_file(uri("file")) as file:
            target = bytearray(b"untouched")
            expect(file.readinto(3, memoryview(target)[:0]), 0)
            expect(bytes(target), b"untouched")
        """,
        folder="empty-read",
    )


def test_s3_empty_file_not_created(s3_store, run_subject):
    code = """
        created = sys.argv[1] == "created"
        put_nothing = fs.new_writable_file(uri("empty"))
        put_nothing.close()
        expect(fs.path_exists(uri("empty")), created)
        if created:
            expect((fs.get_file_size(uri("empty")), get("empty")), (0, b""))
            expect_error(errors.InvalidArgumentError, fs.new_read_only_memory_region_from_file,
                         uri("empty"))
            with fs.open(uri("opened"), "w"):
                pass
            expect(fs.path_exists(uri("opened")), True)
        """
    run_subject(s3_store, code, "created", folder="empty-file")
    run_subject(s3_store, code, "lost", folder="empty-file-raw", without="_created")


def test_s3_missing_paths_succeed(s3_store, run_subject):
    run_subject(
        s3_store,
        """
        missing = uri("nowhere")
        for ask in (fs.delete_file, fs.delete_dir, fs.get_children, fs.get_file_size):
            expect_error(FileNotFoundError, ask, missing)
        expect_error(FileNotFoundError, fs.rename_file, missing, uri("target"))
        put("directory/file")
        expect_error(errors.FailedPreconditionError, fs.get_file_size, uri("directory"))
        expect_error(errors.FailedPreconditionError, fs.delete_dir, uri("directory"))
        expect(fs.get_children("s3://fixture"), fs.get_children("s3://fixture/"))
        """,
        folder="missing",
    )
    run_subject(
        s3_store,
        """
        for ask in (fs.delete_file, fs.delete_dir, fs.get_children):
            ask(uri("nowhere"))
        expect_error(errors.InvalidArgumentError, fs.get_children, "s3://fixture")
        """,
        folder="missing-raw",
        without="*",
    )


def test_s3_rename_takes_siblings_along(s3_store, run_subject):
    code = """
        put("a", b"one")
        put("ab", b"two")
        put("ad/c", b"three")
        fs.rename_file(uri("a"), uri("x"))
        expect(" ".join(fs.get_children(base)), sys.argv[1])
        if sys.argv[1] == "ab ad x":
            expect((get("x"), get("ab"), get("ad/c")), (b"one", b"two", b"three"))
            fs.new_writable_file(uri("empty")).close()
            fs.rename_file(uri("empty"), uri("still-empty"))
            expect(get("still-empty"), b"")
        """
    run_subject(s3_store, code, "ab ad x", folder="siblings")
    without = "*"
    run_subject(s3_store, code, "x xb xd", folder="siblings-raw", without=without)


def test_status_must_arrive_ok(s3_store, gcs_store, run_subject):
    """After a failure the next call starts afresh: it does something, and says what."""
    for store in (s3_store, gcs_store):
        run_subject(
            store,
            """
            for _ in range(2):
                expect_error(FileNotFoundError, get, "missing")
                put("file", b"content")
                expect(get("file"), b"content")
                expect(fs.path_exists(uri("missing")), False)
                expect(fs.path_exists(uri("file")), True)
                fs.delete_file(uri("file"))
                expect(fs.path_exists(uri("file")), False)
            """,
            folder="status",
        )


def test_s3_hangs_after_fork(s3_store, run_subject):
    """A forked child uses the inherited filesystem; without the workaround it waits for ever."""
    code = """
        import select
        put("file", b"before")
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            put("child", b"after")
            os.write(writing, get("file") + get("child"))
            os._exit(0)
        worked_around = bool(select.select([reading], [], [], float(sys.argv[1]))[0])
        print("worked_around" if worked_around else "hangs")
        if not worked_around:
            os.kill(child, 9)
        os.waitpid(child, 0)
        read = os.read(reading, 100) if worked_around else b""
        expect(read, b"beforeafter" if worked_around else b"")
        put("parent")
        """
    worked_around = run_subject(s3_store, code, "30", folder="fork")
    assert worked_around.stdout == "worked_around\n"
    raw = run_subject(s3_store, code, "3", folder="fork", without="after_fork_in_child")
    assert raw.stdout == "hangs\n"


def test_listings_have_more_than_one_page(distant_s3, run_subject):
    run_subject(
        distant_s3,
        """
        for number in range(1050):
            change(f"{number:04}", b"")
        names = fs.get_children(base)
        expect((len(names), names[-1]), (1050, "1049"))
        """,
        folder="pages",
    )


_READS_AT_THE_END = """
    for name, content in (("empty", b""), ("file", b"content")):
        with fs.open(uri(name), "wb") as stream:
            stream.write(content)
        with fs.new_random_access_file(uri(name)) as file:
            expect(file.read(0, 100), content)
            expect(file.read(3, 2), content[3:5])
            expect(file.read(len(content), 10), b"")
            expect(file.read(len(content) + 100, 10), b"")
        with fs.open(uri(name), "rb") as stream:
            expect(stream.read(), content)
        if content:  # an empty file is none that could be mapped
            with fs.new_read_only_memory_region_from_file(uri(name)) as region:
                expect(bytes(region.view()), content)
        with fs.open(uri(name), "ab") as stream:
            stream.write(b" and more")
        expect(get(name), content + b" and more")
        fs.copy_file(uri(name), uri("copy"))
        expect(get("copy"), content + b" and more")
    expect_error(errors.NotFoundError, lambda: get("nothing"))
    """


@pytest.mark.parametrize("setting", ["1", None])
def test_s3_read_behind_the_end(s3_store, run_subject, monkeypatch, setting):
    """Without its transfer manager the plugin takes the body of an answer that has none.

    So it is bound to a function that returns where there is no body.
    """
    if setting is not None:
        monkeypatch.setenv("S3_DISABLE_MULTI_PART_DOWNLOAD", setting)
    run_subject(s3_store, _READS_AT_THE_END, folder="behind-the-end")


# Without the host's functions the plugin does not get the variable for single requests either.
_UNGUARDED = "guarded_functions,prepare_environment"


def test_s3_read_behind_the_end_is_a_crash(s3_store, run_subject, monkeypatch):
    monkeypatch.setenv("S3_DISABLE_MULTI_PART_DOWNLOAD", "1")
    code = """
        from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

        put("file", b"content")
        with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
            expect(file.read(7, 10), b"")
            expect(file.read(0, 10), b"content")
        """
    run_subject(s3_store, code, folder="behind-the-end")
    crashed = -signal.SIGSEGV
    run_subject(s3_store, code, folder="behind-the-end", without=_UNGUARDED, status=crashed)


@pytest.fixture
def odd_s3(distant_s3):
    """A store that a test may have answer oddly."""
    yield distant_s3
    distant_s3.set(oddities="")


def test_s3_error_without_element(odd_s3, run_subject, monkeypatch):
    """The SDK takes the element of an error document without a look whether there is one."""
    monkeypatch.setenv("S3_DISABLE_MULTI_PART_DOWNLOAD", "1")
    odd_s3.set(oddities="bare errors")
    code = """
        from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

        put("file", b"<?xml?>")  # which is no error
        with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
            expect(file.read(0, 10), b"<?xml?>")
        with PluginFilesystem.new_random_access_file(fs, uri("nothing")) as file:
            expect_error(errors.NotFoundError, file.read, 0, 10)
        expect_error(errors.NotFoundError, fs.read_file, uri("nothing"))
        """
    run_subject(odd_s3, code, folder="bare")
    crashed = -signal.SIGSEGV
    run_subject(odd_s3, code, folder="bare", without=_UNGUARDED, status=crashed)


def test_s3_longer_answer(odd_s3, run_subject, monkeypatch):
    """A store that ignores Range sends all of the object, which the plugin writes to our memory."""
    monkeypatch.setenv("S3_DISABLE_MULTI_PART_DOWNLOAD", "1")
    code = """
        from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

        memory = bytearray(1000)
        with PluginFilesystem.new_random_access_file(fs, uri("file")) as file:
            expect_error(errors.InternalError, file.readinto, 0, memoryview(memory)[:10])
        print(memory.count(1))
        """
    run_subject(odd_s3, "put('file', bytes([1]) * 900)", folder="longer")
    odd_s3.set(oddities="whole objects")
    assert run_subject(odd_s3, code, folder="longer").stdout == "10\n"
    assert run_subject(odd_s3, code, folder="longer", without=_UNGUARDED).stdout == "900\n"


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
