"""A fork of an application has workers of its own, and leaves those of its parent alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.native.preloading import preloaded, with_preloaded
from tests.fixtures.compiler import compile_object, link_library
from tests.isolation.hostile_plugin import hostile_plugin

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

_FORKED_WHILE_A_PROCESS_STARTS = """
    import os
    import sys
    from modular_tf.errors import UnavailableError
    from tests.isolation.conftest import end_worker, isolated, when_the_next_process_waits

    held, children = os.environ["HOSTILE_HELD"], []
    with isolated(sys.argv[1], bundled=False) as service:
        hostile = service.filesystem("hostile")
        hostile.path_exists("hostile://h/x")

        def fork():
            children.append(os.fork())
            if children[-1]:
                os.unlink(held)

        def answer():
            try:
                return hostile.path_exists("hostile://h/x")
            except UnavailableError as error:
                return error.rule

        for _ in range(5):
            end_worker(service, service.workers()[0].plugin)
            when_the_next_process_waits(held, fork)
            first = answer()
            if not children[-1]:
                again = answer()
                if (first, again) != (False, False):
                    print("in the child:", first, again, flush=True)
                os._exit(7)
            print(first, os.waitstatus_to_exitcode(os.waitpid(children[-1], 0)[1]))
"""

_FORKED_WHILE_THE_FIRST_PROCESS_STARTS = """
    import os
    import sys
    import pytest
    from tests.fixtures.interrupts import call_at
    from tests.isolation.conftest import isolated

    children = []
    with isolated(isolation="none") as service:
        call_at(pytest.MonkeyPatch(), sys.argv[1], "before", lambda: children.append(os.fork()))
        made = service.instance("ram", name="one", environment={})
        made.create_dir("ram://folder")
        print(made.path_exists("ram://folder"), flush=True)
    if children == [0]:
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""

_FORKED_WHILE_A_CHANNEL_IS_MADE = """
    import ctypes
    import os
    import signal
    import sys
    import threading
    import time
    from contextlib import suppress
    from modular_tf import Config, PluginService
    from modular_tf.errors import UnavailableError

    os.mkfifo("fifo")
    service = PluginService(config=Config(isolation="process", call_timeout_s=20.0))
    service.load()
    local = service.filesystem("")
    ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[1]), "forks_next").value = 1
    local.path_exists("/")

    def kill():
        while True:  # a request that it has not begun with is made again
            time.sleep(0.2)
            for pid in [found.pid for found in service.workers() if found.in_flight and found.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    try:
        local.new_random_access_file(os.path.abspath("fifo"))
    except UnavailableError as error:
        print(error.rule, flush=True)
    os._exit(0)
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


def test_a_child_that_is_forked_while_a_process_starts_leaves_that_to_its_parent(
    run_forked, tmp_path
):
    held = {"HOSTILE_HELD": str(tmp_path / "held")}
    child = run_forked(_FORKED_WHILE_A_PROCESS_STARTS, hostile_plugin(), env=held)
    assert child.stdout == "False 7\n" * 5


_STEPS_OF_A_START = (
    "modular_tf.processes.zygote_process:ZygoteProcess.wait_until_ready",
    "modular_tf.processes.zygote_process:ZygoteProcess.new_watcher",
    "modular_tf.processes.zygote_process:Lane.give",
    "modular_tf.isolation.worker_process:WorkerProcess._wait_for",
    "modular_tf.isolation.worker_process:WorkerProcess.wait_for_offer",
)


@pytest.mark.parametrize("step", _STEPS_OF_A_START)
def test_a_child_that_a_signal_handler_forks_during_a_start_starts_its_own(run_forked, step):
    child = run_forked(_FORKED_WHILE_THE_FIRST_PROCESS_STARTS, step)
    assert child.stdout == "True\nTrue\n7\n"


def test_the_end_of_a_worker_is_seen_though_a_child_has_its_end_of_a_channel(run_python):
    source = Path(__file__).with_name("forking_socketpair.c")
    library = link_library("libforking_socketpair.so", [compile_object(source)], ["-ldl"])
    environment = with_preloaded(os.environ, (*preloaded(os.environ), str(library)))
    child = run_python(_FORKED_WHILE_A_CHANNEL_IS_MADE, library, env=environment)
    assert child.stdout == "LD-140\n"
