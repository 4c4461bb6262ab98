"""Forked children: they go on with what is theirs, and leave the parent's files alone."""

from __future__ import annotations

import gc
import os
import subprocess
import traceback
from pathlib import Path

import pytest

from tests.filesystem.counted import begin, counted, ended, is_closed
from tests.fixtures.compiler import compile_object, link_program


@counted(**ended(files=3, writers=1))
def test_a_forked_child_goes_on_with_what_the_parent_had():
    service, fs = begin()
    writer = fs.new_writable_file("fixture://h/parent")
    writer.append(b"abc")
    reader = fs.new_random_access_file("fixture://h/parent")
    view = fs.new_read_only_memory_region_from_file("fixture://h/parent").view()
    if (child := os.fork()) == 0:
        try:
            assert is_closed(lambda: writer.append(b"x"))
            assert is_closed(lambda: reader.read(0, 1))
            assert view == b"abc"
            assert fs.open_count == 1
            with fs.open("fixture://h/child", "w") as stream:
                stream.write("mine")
            assert fs.open("fixture://h/child").read() == "mine"
            assert service.schemes() == {"fixture": service.plugins()[0].name}
            service.register_filesystem("other", fs)
            del view
            gc.collect()
            assert fs.open_count == 0
            service.close()
        except BaseException:  # noqa: BLE001  (it is the end of the child)
            traceback.print_exc()
            os._exit(2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.append(b"d")
    writer.close()
    assert reader.read(0, 9) == b"abcd"
    assert not fs.path_exists("fixture://h/child")


def test_a_forked_child_that_ends_leaves_the_parents_files_alone(tmp_path, run_forked):
    """What lies in a buffer is written once."""
    run_forked(
        """
        import os, sys
        from modular_tf.service.default import default_service
        fs = default_service().filesystem("")
        writer, stream = fs.new_writable_file("writer"), fs.open("stream", "wb")
        writer.append(b"one ")
        stream.write(b"once")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        writer.append(b"two")
        writer.close()
        stream.close()
        """
    )

    assert (tmp_path / "writer").read_bytes() == b"one two"
    assert (tmp_path / "stream").read_bytes() == b"once"


def test_a_child_does_not_wait_for_a_thread_at_a_stream(run_forked):
    """Its lock on the stream is the parent's; the child has no such thread to give it back."""
    run_forked(
        """
        import fcntl, os, signal, struct, sys, termios, threading
        import modular_tf as mtf

        def waiting_in(pipe):
            return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"0000"))[0]

        os.mkfifo("pipe")
        service = mtf.PluginService(config=mtf.Config())
        service.load("posix_filesystem")
        fs = service.filesystem("")
        pipe = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        stream = fs.open("pipe", "wb")
        more = bytes(1 << 22)  # more than a pipe holds: the thread stays inside
        thread = threading.Thread(target=stream.write, args=(more,))
        thread.start()
        while waiting_in(pipe) < 1 << 12:
            pass
        if os.fork() == 0:
            signal.alarm(60)
            service.close()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.wait()[1])
        os.set_blocking(pipe, True)
        left = len(more)
        while left:
            left -= len(os.read(pipe, left))
        thread.join()
        stream.close()
        service.close()
        sys.exit(status and 1)
        """
    )


# ---- the bundled ram plugin ----


@pytest.mark.parametrize("name", ["fork_gate_without_memory", "fork_gate_in_a_call"])
def test_the_gate_of_the_bundled_ram(name):
    """Handlers without memory are tried again; a fork in a call leaves the count as it is."""
    here = Path(__file__).parent
    sources = here.parents[1] / "contrib" / "ram_filesystem" / "src"
    files = here / f"{name}.cc", sources / "fork_gate.cc"
    objects = [compile_object(file, header_folders=[sources]) for file in files]
    program = link_program(name, objects, ["-pthread"])
    assert subprocess.run([program], check=False, timeout=60).returncode == 0
