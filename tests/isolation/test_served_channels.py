"""The worker's end of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

# The server of a worker in a thread, whose next descriptors have the numbers `low` and `high`.
_WITHOUT_DESCRIPTORS = """
    import contextlib
    import os
    import resource
    import socket
    import threading
    from modular_tf.native.ffi import ffi, lib

    control, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    file = os.open("/dev/null", os.O_RDONLY)
    low, high = os.dup(file), os.dup(file)
    channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    os.close(low)
    os.close(high)

    def give(kept, given):
        kept.send(b"no request")
        socket.send_fds(control, [b"c"], [given.fileno()])
        given.close()
        with contextlib.suppress(ConnectionResetError):
            kept.recv(1)  # the end of the channel

    serve = (served.fileno(), ffi.NULL, 0)
    threading.Thread(target=lib.mtf_worker_serve, args=serve, daemon=True).start()
    give(*channels[0])
    os.dup2(file, high)  # what the plugin has opened meanwhile
    while os.dup(file) <= high:
        pass
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (high + 1, most))  # so that none is left
    give(*channels[1])
    print(*(os.path.samestat(os.fstat(number), os.fstat(file)) for number in (low, high)))
"""


def test_a_worker_without_descriptors_closes_none_of_the_plugins(run_python: PythonRunner) -> None:
    assert run_python(_WITHOUT_DESCRIPTORS).stdout == "True True\n"
