"""Forked children: they go on with what is theirs, and leave the parent's files alone."""

from __future__ import annotations

from tests.filesystem.ended_child import assert_ended


def test_a_forked_child_goes_on_with_what_the_parent_had(ledger):
    counted = ledger(
        """
import threading
service, fs = begin()
writer = fs.new_writable_file("fixture://h/parent")
writer.append(b"abc")
reader = fs.new_random_access_file("fixture://h/parent")
view = fs.new_read_only_memory_region_from_file("fixture://h/parent").view()
held, stop = threading.Event(), threading.Event()
def hold():
    with service._lock, service._registries.schemes._lock:
        held.set()
        stop.wait(60)
holder = threading.Thread(target=hold)
holder.start()
held.wait(60)
pid = os.fork()
if pid == 0:
    try:
        for use in (lambda: writer.append(b"x"), lambda: reader.read(0, 1)):
            try:
                use()
            except ClosedError:
                continue
            os._exit(1)
        assert view == b"abc"
        assert fs.open_count == 1
        with fs.open("fixture://h/child", "w") as stream:
            stream.write("mine")
        assert fs.open("fixture://h/child").read() == "mine"
        assert service.plugins() and service.schemes() == {"fixture": service.plugins()[0].name}
        service.register_filesystem("other", fs)
        del view
        gc.collect()
        assert fs.open_count == 0
        service.close()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(2)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
holder.join()
writer.append(b"d")
writer.close()
assert reader.read(0, 9) == b"abcd"
assert not fs.path_exists("fixture://h/child")
del view, reader
"""
    )
    assert_ended(counted, files=3, writers=1)


def test_a_forked_child_that_ends_leaves_the_parents_files_alone(tmp_path, run_python):
    run_python(
        """
        import os, sys
        from modular_tf.service.default import default_service
        fs = default_service().filesystem("")
        writer = fs.new_writable_file(sys.argv[1])
        writer.append(b"one ")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        writer.append(b"two")
        writer.close()
        """,
        tmp_path / "f",
    )

    assert (tmp_path / "f").read_bytes() == b"one two"


def test_buffered_data_of_the_parent_is_written_once(tmp_path, run_python):
    run_python(
        """
        import os, sys
        from modular_tf.service.default import default_service
        stream = default_service().filesystem("").open(sys.argv[1], "wb")
        stream.write(b"once")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stream.close()
        """,
        tmp_path / "f",
    )

    assert (tmp_path / "f").read_bytes() == b"once"


def test_a_fork_waits_for_calls_of_the_bundled_ram(run_python):
    """A child has no thread that would release a lock which was taken at the fork."""
    run_python(
        """
import modular_tf as mtf
import os, signal, threading, time

service = mtf.PluginService(config=mtf.Config())
service.load("ram_filesystem")
fs = service.filesystem("ram")
fs.create_dir("ram://many")
for number in range(5000):
    fs.new_writable_file(f"ram://many/{number}").close()

def list_again_and_again():
    while True:
        fs.get_children("ram://many")

threading.Thread(target=list_again_and_again, daemon=True).start()
for number in range(20):
    time.sleep(0.005)  # back where that thread gives Python's lock away, which is in the plugin
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        fs.new_writable_file("ram://many/of-the-child").close()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status
os._exit(0)
"""
    )
