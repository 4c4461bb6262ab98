"""Who ends what, and when: files, regions, filesystems, services, the process."""

from __future__ import annotations

import gc

import pytest

from modular_tf.errors import AbortedError, ClosedError, FailedPreconditionError, ModularTFError
from modular_tf.filesystem.plugin_filesystem import PluginWritableFile
from modular_tf.service.service import PluginService
from tests.filesystem.counted import begin, counted, ended, is_closed
from tests.fixtures.forked_children import in_a_fork

open_at_the_end = []
WRITTEN = "text", "binary", "raw"


def opened():
    """Return a service, its filesystem, and files of each kind, with something written."""
    service, fs = begin()
    files = [fs.open("fixture://h/text", "w"), fs.open("fixture://h/binary", "ab")]
    files[0].write("kept")
    files[1].write(b"kept")
    files.append(fs.new_writable_file("fixture://h/raw"))
    files[2].append(b"kept")
    return service, fs, [*files, fs.new_random_access_file("fixture://h/raw")]


def drop_files():
    service, fs, files = opened()
    files.clear()
    gc.collect()
    assert fs.open_count == 0
    assert [fs.stat(f"fixture://h/{name}").length for name in WRITTEN] == [4] * 3
    service.close()


def close_service():
    service, fs, files = opened()
    assert fs.open_count == 4
    service.close()
    text, binary, writer, reader = files
    assert text.closed
    assert binary.closed
    assert is_closed(lambda: writer.append(b"x"))
    assert is_closed(lambda: reader.read(0, 1))
    assert is_closed(lambda: fs.path_exists("/"))
    for closed in (*files, service):
        closed.close()


def drop_service():
    service, fs, files = opened()
    del service, fs
    gc.collect()
    assert files[3].read(0, 4) == b"kept"
    files[2].append(b"more")
    while files:
        del files[-1]
        gc.collect()


ENDINGS = {
    "the files are dropped": drop_files,
    "the service is closed": close_service,
    "the service is dropped": drop_service,
    "the process ends": lambda: open_at_the_end.extend(opened()),
}


@pytest.mark.parametrize("ending", ENDINGS)
@counted(**ended(files=4, writers=3))
def test_what_is_open_is_written_out_and_cleaned_up_once(ending):
    ENDINGS[ending]()


@pytest.mark.parametrize("is_dropped", [False, True])
@counted(**ended(files=2, writers=1))
def test_memory_outlives_the_service(is_dropped):
    service, fs = begin()
    with fs.new_writable_file("fixture://h/f") as writer:
        writer.append(b"abc")
    region = fs.new_read_only_memory_region_from_file("fixture://h/f")
    view = region.view()
    if not is_dropped:
        service.close()
    del service, fs
    gc.collect()
    assert view == region.view() == b"abc"
    region.close()
    assert view == b"abc"
    del view
    gc.collect()


@counted("close-fails", **ended(files=2, writers=2))
def test_a_failing_close_cleans_up_all_the_same():
    service, fs = begin()
    open_at_the_end.extend(fs.new_writable_file("fixture://h/f") for _ in range(2))
    with pytest.raises(ModularTFError, match="the upload was refused"):
        service.close()
    service.close()


@counted("init-fails", inits=1, cleanups=0)
def test_init_that_fails_needs_no_cleanup():
    service, _ = begin()
    assert service.plugins()[0].reason.rule == "FS-019"
    service.close()


def test_a_closed_service_says_so(own_service):
    ram = own_service.filesystem("ram")
    stream = ram.open("ram://g", "w")
    below = stream.detach()
    with own_service:
        assert own_service.schemes()
    assert own_service.closed
    for use in (
        own_service.load,
        own_service.discover,
        own_service.devices,
        own_service.__enter__,
        lambda: own_service.device("CPU:0"),
        lambda: own_service.filesystem("ram"),
        lambda: own_service.filesystem_for("/x"),
        lambda: own_service.register_filesystem("mine", object()),
        lambda: ram.path_exists("ram://x"),
        lambda: ram.open("ram://x"),
        lambda: ram.read_file("ram://x"),
        lambda: ram.get_children("ram://"),
        lambda: ram.paths_exist(["ram://x"]),
        ram.flush_caches,
    ):
        with pytest.raises(ClosedError):
            use()
    assert own_service.schemes() == {}
    assert ram.open_count == 0
    assert below.closed  # though its stream was detached from it


def test_threads_with_open_files_get_to_know_the_end(run_forked):
    """Python kills those that it meets later; with C++ frames on their stack the process aborts."""
    child = run_forked(
        """
        import os, threading
        from modular_tf.errors import ModularTFError
        from modular_tf.service.service import PluginService
        service = PluginService()
        service.load()
        fs = service.filesystem("ram")
        with fs.new_writable_file("ram://file") as file:
            file.append(bytes(1000))
        reading = threading.Barrier(5)
        def read_for_ever():
            with fs.new_random_access_file("ram://file") as file:
                reading.wait()
                try:
                    while True:
                        file.read(0, 1000)
                except (ModularTFError, ValueError):
                    os.write(1, b"ended ")
        for _ in range(4):
            threading.Thread(target=read_for_ever, daemon=True).start()
        reading.wait()
        """
    )

    assert child.stdout == "ended " * 4


def test_a_service_that_is_closed_in_the_middle_of_a_write_writes_out_the_rest(
    own_service, tmp_path, monkeypatch
):
    """By a signal handler of the thread that writes, to which io refuses that file."""
    fs = own_service.filesystem("")
    busy, other = fs.open(str(tmp_path / "busy"), "wb"), fs.open(str(tmp_path / "other"), "w")
    busy.write(b"busy")
    other.write("kept")

    def be_interrupted(*_):
        monkeypatch.undo()
        with pytest.raises(FailedPreconditionError, match="is being written to"):
            own_service.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(PluginWritableFile, "append", be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        busy.flush()
    with pytest.raises(AbortedError, match="a write was interrupted"):
        busy.close()

    assert (tmp_path / "other").read_text() == "kept"


@in_a_fork
def test_what_the_collector_finds_in_a_cycle_is_written_out():
    """It finalizes in any order, here the file before the stream that has a buffer for it."""
    with PluginService() as service:
        service.load()
        fs = service.filesystem("ram")
        for number in range(20):
            uri = f"ram://{number}"
            things = [fs.open(uri, "wb"), fs.open(uri, "rb")]
            things[0].write(b"content")
            things.append(things)
            del things
            gc.collect()
            with fs.open(uri, "rb") as written:
                assert written.read() == b"content"
