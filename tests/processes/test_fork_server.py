"""The process that forks watchers, and what becomes its child beside them."""

from __future__ import annotations

import os
import signal

SERVING = """
    import errno, os, signal, socket, sys
    from modular_tf.processes import descendants, fork_server

    ours, theirs = socket.socketpair()
    parent, kill = os.getpid(), os.kill

    def refuse(pid, number):
        if number == signal.SIGKILL:
            raise PermissionError(errno.EPERM, "Operation not permitted")  # of another user
        kill(pid, number)

    server = os.fork()
    if server == 0:
        ours.close()
        descendants.adopt_orphans()
        middle = os.fork()
        if middle == 0:
            if os.fork() == 0:
                os.closerange(0, 64)
                signal.pause()
            os._exit(0)
        os.waitpid(middle, 0)
        (orphan,) = descendants.children(os.getpid())
        os.write(1, b"%d\\n" % orphan)
        descendants._PATIENCE_WITH_THE_KILLED_S = 0.1
        os.kill = refuse
        watch = lambda descriptor: os.write(descriptor, b"watches")
        fork_server.ForkServer(theirs.fileno(), watch).serve(parent)
    theirs.close()
    ours.settimeout(60)
    assert ours.recv(1) == b"r"
    for _ in range(2):
        watcher, given = socket.socketpair()
        watcher.settimeout(60)
        socket.send_fds(ours, [b"w"], [given.fileno()])
        given.close()
        assert watcher.recv(7) == b"watches"
    ours.close()
    assert os.waitpid(server, 0)[1] == 0
"""


def test_an_orphan_of_another_user_does_not_end_it(run_python):
    """A plugin may start a program that takes other rights, and whose watcher then ends."""
    told = run_python(SERVING)
    os.kill(int(told.stdout), signal.SIGKILL)
