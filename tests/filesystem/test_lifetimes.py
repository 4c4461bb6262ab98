"""Who ends what, and when: files, regions, filesystems, services, the process, its children."""

from __future__ import annotations

import pytest

from modular_tf.errors import AbortedError, ClosedError, FailedPreconditionError
from modular_tf.filesystem.plugin_filesystem import PluginWritableFile
from modular_tf.service.service import PluginService
from tests.filesystem.ended_child import assert_ended


def test_an_abandoned_file_is_closed_then_cleaned_up(ledger):
    counted = ledger(
        """
service, fs = begin()
writer = fs.new_writable_file("fixture://h/f")
writer.append(b"kept")
del writer
gc.collect()
assert fs.open_count == 0
reader = fs.new_random_access_file("fixture://h/f")
assert reader.read(0, 9) == b"kept"
del reader
assert fs.open_count == 0
service.close()
"""
    )
    assert_ended(counted, files=2, writers=1)


def test_an_abandoned_stream_keeps_its_data(ledger):
    counted = ledger(
        """
service, fs = begin()
stream = fs.open("fixture://h/f", "w")
stream.write("kept")
del stream
gc.collect()
assert fs.open("fixture://h/f").read() == "kept"
gc.collect()
service.close()
"""
    )
    assert_ended(counted, files=2, writers=1)


def test_a_service_closes_what_is_open_and_writes_out_streams(ledger):
    counted = ledger(
        """
service, fs = begin()
other, other_fs = begin()
text = fs.open("fixture://h/text", "w")
text.write("kept")
binary = fs.open("fixture://h/binary", "ab")
binary.write(b"kept too")
writer = fs.new_writable_file("fixture://h/raw")
reader = fs.new_random_access_file("fixture://h/raw")
assert fs.open_count == 4
service.close()
assert text.closed and binary.closed
for use in (lambda: writer.append(b"x"), lambda: reader.read(0, 1), lambda: fs.path_exists("/")):
    try:
        use()
    except ClosedError:
        continue
    raise AssertionError(use)
text.close(); binary.close(); writer.close(); reader.close()
service.close()
other.close()
"""
    )
    assert_ended(counted, files=4, writers=3, cleanups=2)


def test_what_a_closing_service_writes_out_arrives(tmp_path):
    file = tmp_path / "f"
    service = PluginService()
    service.load()
    stream = service.filesystem("").open(str(file), "w")
    stream.write("kept")
    service.close()

    assert file.read_text() == "kept"
    stream.close()


def test_the_end_of_the_process_is_an_end_of_service(ledger):
    counted = ledger(
        """
service, fs = begin()
stream = fs.open("fixture://h/f", "w")
stream.write("kept")
writer = fs.new_writable_file("fixture://h/g")
reader = fs.new_random_access_file("fixture://h/g")
"""
    )
    assert_ended(counted, files=3, writers=2)


def test_what_is_written_at_the_end_of_the_process_arrives(tmp_path, run_python):
    run_python(
        """
        import sys
        from modular_tf.service.default import default_service
        stream = default_service().filesystem("").open(sys.argv[1], "w")
        stream.write("kept")
        """,
        tmp_path / "f",
    )

    assert (tmp_path / "f").read_text() == "kept"


def test_files_outlive_the_last_reference_to_their_service(ledger):
    counted = ledger(
        """
service, fs = begin()
with fs.new_writable_file("fixture://h/f") as writer:
    writer.append(b"abc")
reader = fs.new_random_access_file("fixture://h/f")
view = fs.new_read_only_memory_region_from_file("fixture://h/f").view()
writer = fs.new_writable_file("fixture://h/g")
del service, fs
gc.collect()
assert reader.read(0, 3) == b"abc"
assert view == b"abc"
writer.append(b"x")
del reader
gc.collect()
del writer
gc.collect()
assert view == b"abc"
del view
gc.collect()
"""
    )
    assert_ended(counted, files=4, writers=2)


def test_memory_outlives_the_service_that_is_closed(ledger):
    counted = ledger(
        """
service, fs = begin()
with fs.new_writable_file("fixture://h/f") as writer:
    writer.append(b"abc")
region = fs.new_read_only_memory_region_from_file("fixture://h/f")
view = region.view()
service.close()
assert view == b"abc" and region.view() == b"abc"
region.close()
assert view == b"abc"
del view
"""
    )
    assert_ended(counted, files=2, writers=1)


def test_memory_that_is_viewed_when_the_process_ends_is_left_alone(ledger):
    counted = ledger(
        """
service, fs = begin()
with fs.new_writable_file("fixture://h/f") as writer:
    writer.append(b"abc")
import builtins
builtins.kept = fs.new_read_only_memory_region_from_file("fixture://h/f").view()
"""
    )
    assert counted["inits"] == counted["cleanups"] == 1
    assert counted["files_opened"] == 2


def test_a_failing_close_cleans_up_all_the_same(ledger):
    counted = ledger(
        """
service, fs = begin()
for _ in range(2):
    writer = fs.new_writable_file("fixture://h/f")
try:
    service.close()
except ModularTFError as error:
    assert "the upload was refused" in error.message, error
else:
    raise AssertionError("close said nothing")
service.close()
""",
        "close-fails",
    )
    assert_ended(counted, files=2, writers=2)


def test_init_that_fails_needs_no_cleanup(ledger):
    counted = ledger(
        """
service = PluginService(plugin_paths=sys.argv[1:], bundled=False)
assert service.load().plugins[0].reason.rule == "FS-019"
service.close()
""",
        "init-fails",
    )
    assert counted["cleanups"] == 0


def test_a_closed_service_says_so():
    service = PluginService()
    service.load()
    ram = service.filesystem("ram")
    with service:
        assert service.schemes()
    assert service.closed
    for use in (
        service.load,
        service.discover,
        service.devices,
        lambda: service.device("CPU:0"),
        lambda: service.filesystem("ram"),
        lambda: service.filesystem_for("/x"),
        lambda: service.register_filesystem("mine", object()),
        lambda: ram.path_exists("ram://x"),
        lambda: ram.open("ram://x"),
        lambda: ram.get_children("ram://"),
        lambda: ram.paths_exist(["ram://x"]),
    ):
        with pytest.raises(ClosedError):
            use()
    assert service.schemes() == {}


def test_services_do_not_see_each_others_files(fixture_plugin):
    library = fixture_plugin("good")
    with (
        PluginService(plugin_paths=[library], bundled=False) as one,
        PluginService(plugin_paths=[library], bundled=False) as two,
    ):
        one.load()
        two.load()
        one.filesystem("fixture").create_dir("fixture://h/only-here")

        assert not two.filesystem("fixture").path_exists("fixture://h/only-here")
        one.close()
        two.filesystem("fixture").create_dir("fixture://h/still-works")


def test_a_thread_that_never_lets_go_does_not_keep_the_process(run_python):
    """As one that hangs in a plugin's init does; its service is not closed, another one is."""
    child = run_python(
        """
        import threading
        from modular_tf.service import service as module
        from modular_tf.service.service import PluginService
        module._PATIENCE_AT_EXIT_S = 0.1
        stuck, other = PluginService(), PluginService()
        stuck.load(), other.load()
        locked = threading.Event()
        def hang():
            with stuck._lock:
                locked.set()
                threading.Event().wait()
        threading.Thread(target=hang, daemon=True).start()
        locked.wait()
        """
    )

    assert child.returncode == 0


def test_threads_with_open_files_get_to_know_the_end(run_python):
    """Python kills those that it meets later; with C++ frames on their stack the process aborts."""
    child = run_python(
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
                    os.write(1, b"let go ")
        for _ in range(4):
            threading.Thread(target=read_for_ever, daemon=True).start()
        reading.wait()
        """
    )

    assert child.stdout == "let go " * 4


def test_a_service_that_is_closed_in_the_middle_of_a_write_writes_out_the_rest(
    service, tmp_path, monkeypatch
):
    """By a signal handler of the thread that writes, to which io refuses that file."""
    fs = service.filesystem("")
    busy, other = fs.open(str(tmp_path / "busy"), "wb"), fs.open(str(tmp_path / "other"), "w")
    busy.write(b"busy")
    other.write("kept")

    def be_interrupted(*_):
        monkeypatch.undo()
        with pytest.raises(FailedPreconditionError, match="is being written to"):
            service.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(PluginWritableFile, "append", be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        busy.flush()
    with pytest.raises(AbortedError, match="a write was interrupted"):
        busy.close()

    assert (tmp_path / "other").read_text() == "kept"


def test_another_thread_that_closes_a_filesystem_may_be_faster(service):
    class TakenByAnother(list):
        def __bool__(self):
            was_there = len(self) > 0
            self.clear()
            return was_there

    filesystem = service.filesystem("ram")
    filesystem._close_results = TakenByAnother()

    filesystem.close()

    with pytest.raises(ClosedError):
        filesystem.path_exists("ram://x")


@pytest.mark.parametrize("scheme", ["file", "ram"])
def test_what_the_collector_finds_in_a_cycle_is_written_out(scheme, run_python, tmp_path):
    """It finalizes in any order, here the file before the stream that has a buffer for it."""
    run_python(
        """
        import gc, sys
        from modular_tf.service.service import PluginService

        with PluginService() as service:
            service.load()
            fs = service.filesystem(sys.argv[1])
            for number in range(50):
                uri = f"{sys.argv[2]}{number}"
                things = [fs.open(uri, "wb"), fs.open(uri, "rb")]
                things[0].write(b"content")
                things.append(things)
                del things
                gc.collect()
                with fs.open(uri, "rb") as written:
                    assert written.read() == b"content"
        """,
        scheme,
        f"file://{tmp_path}/" if scheme == "file" else "ram://",
    )
