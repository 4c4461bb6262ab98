"""A child that is forked in the middle of what other threads do with files."""

from __future__ import annotations

_FORKED_WHILE_WRITING = """
    import fcntl, os, signal, struct, sys, termios, threading
    import modular_tf as mtf

    def waiting_in(pipe):
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"0000"))[0]

    os.mkfifo("pipe")
    service = mtf.PluginService(config=mtf.Config())
    service.load("posix_filesystem")
    fs = service.filesystem("")
    pipe = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    stream = fs.{open}
    more = bytes(1 << 22)  # more than a pipe holds: the thread stays inside
    stream.write(more[: {buffered}])
    thread = threading.Thread(target=lambda: stream.{ending})
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


def test_a_child_does_not_wait_for_a_thread_that_was_writing(run_python):
    """Its lock on the stream is the parent's; the child has no such thread to give it back."""
    run_python(
        _FORKED_WHILE_WRITING.format(open='open("pipe", "wb")', buffered=0, ending="write(more)")
    )


def test_a_child_does_not_wait_for_a_thread_that_was_closing(run_python):
    run_python(
        _FORKED_WHILE_WRITING.format(
            open='open("pipe", "wb", 1 << 23)', buffered="", ending="close()"
        )
    )
