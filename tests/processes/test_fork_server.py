"""The process that forks watchers, and what becomes its child beside them."""

import os
import signal

SERVING = """
    import errno, os, signal, socket, sys
    from modular_tf.processes import descendants, zygote

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
        descendants._KILL_TIMEOUT_S = 0.1
        os.kill = refuse
        watch = lambda descriptor: os.write(descriptor, b"watches")
        zygote.ForkServer(theirs.fileno(), watch).serve(parent)
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


def test_an_orphan_of_another_user_does_not_end_it(run_forked):
    """A plugin may start a program that takes other rights, and whose watcher then ends."""
    told = run_forked(SERVING)
    os.kill(int(told.stdout), signal.SIGKILL)


WITHOUT_PROCESSES = """
    import errno, os, socket
    from modular_tf.processes import zygote

    ours, theirs = socket.socketpair()
    parent, fork = os.getpid(), os.fork
    begun = []

    def fork_but_once():
        begun.append(1)
        if len(begun) == 2:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return fork()

    def watch(descriptor):
        while byte := os.read(descriptor, 1):
            os.write(descriptor, byte)

    server = os.fork()
    if server == 0:
        ours.close()
        os.fork = fork_but_once
        zygote.ForkServer(theirs.fileno(), watch).serve(parent)
    theirs.close()
    ours.settimeout(60)
    assert ours.recv(1) == b"r"

    def new_watcher():
        watcher, given = socket.socketpair()
        watcher.settimeout(60)
        socket.send_fds(ours, [b"w"], [given.fileno()])
        given.close()
        watcher.sendall(b"?")
        return watcher

    first, refused, third = new_watcher(), new_watcher(), new_watcher()
    try:
        assert refused.recv(1) == b""
    except ConnectionResetError:  # it was never read
        pass
    assert third.recv(1) == b"?"
    first.sendall(b"!")
    assert first.recv(1) + first.recv(1) == b"?!"
    first.close()
    third.close()
    ours.close()
    assert os.waitpid(server, 0)[1] == 0
"""


def test_a_shortage_of_processes_does_not_end_those_that_run(run_forked):
    run_forked(WITHOUT_PROCESSES)
