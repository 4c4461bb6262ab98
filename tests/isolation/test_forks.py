"""A fork of an application has workers of its own, and leaves those of its parent alone."""

from __future__ import annotations

_APPLICATION = """
    import os
    from modular_tf import PluginService

    service = PluginService(isolation="process")
    service.load()
    ram, local = service.filesystem("ram"), service.filesystem("")
    with ram.new_writable_file("ram://stored") as file:
        file.append(b"of the parent")
    print(local.path_exists("/"), "posix_filesystem" in open("/proc/self/maps").read(), flush=True)
    child = os.fork()
    if child == 0:
        print({found.pid for found in service.workers()}, flush=True)
        found = ram.path_exists("ram://stored"), local.path_exists("/")
        os._exit(7 if found == (False, True) else 8)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(ram.read_file("ram://stored"), local.path_exists("/"))
"""

_FORKED_IN_A_HANDLER = """
    import os
    import signal
    import sys
    import threading
    from modular_tf import PluginService
    from modular_tf.errors import UnavailableError
    from modular_tf.isolation.worker import worker_of
    from modular_tf.native.ffi import ffi, lib
    from tests.isolation.conftest import during_a_call, wait_until

    path, children = sys.argv[1], []
    os.mkfifo(path)
    service = PluginService(isolation="process")
    service.load()
    local = service.filesystem("")
    local.path_exists("/")

    def fork(*_):
        children.append(os.fork())
        if children == [0]:
            local.path_exists("/")  # by a process of the child's own, which keeps the channel

    def channels():
        state = ffi.new("mtf_worker_state *")
        lib.mtf_worker_get_state(worker_of(local).handle, state)
        return state.channels

    signal.signal(signal.SIGUSR1, fork)

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        wait_until(lambda: children)
        os.close(os.open(path, os.O_WRONLY))

    with during_a_call(service, interrupt):
        try:
            local.new_random_access_file(path)
        except UnavailableError as error:
            is_counted = channels() == 1
            os._exit(8 if error.rule == "LD-140" and is_counted and local.path_exists("/") else 9)
        if children == [0]:
            os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), local.path_exists("/"))
"""


def test_a_fork_and_its_parent_have_workers_of_their_own(run_forked):
    assert run_forked(_APPLICATION).stdout.splitlines() == [
        "True False",  # nothing of the plugin is in the process
        "{0}",  # the child reports no process of its parent
        "7",
        "b'of the parent' True",
    ]


def test_a_child_that_is_forked_during_a_call_leaves_the_answer_to_its_parent(run_forked, tmp_path):
    assert run_forked(_FORKED_IN_A_HANDLER, tmp_path / "fifo").stdout == "8 True\n"
