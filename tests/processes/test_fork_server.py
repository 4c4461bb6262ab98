"""The process that forks watchers, and what becomes its child beside them."""

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
