"""A fork of an application has workers of its own, and leaves those of its parent alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.native.preloading import preloaded, with_preloaded
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_APPLICATION = """
    import os
    from modular_tf import PluginService

    service = PluginService(isolation="process")
    service.load()
    ram = service.filesystem("ram")
    file = ram.new_writable_file("ram://kept")
    file.append(b"of the parent")
    file.close()
    child = os.fork()
    if child == 0:
        os._exit(8 if ram.path_exists("ram://kept") else 7)  # its worker has a store of its own
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(ram.read_file("ram://kept"))
"""

_FORKED_IN_A_HANDLER = """
    import os
    import signal
    import sys
    import threading
    import time
    from modular_tf import PluginService
    from modular_tf.errors import UnavailableError

    path, children = sys.argv[1], []
    os.mkfifo(path)
    service = PluginService(isolation="process")
    service.load()
    local = service.filesystem("")
    local.path_exists("/")
    signal.signal(signal.SIGUSR1, lambda *_: children.append(os.fork()))

    def interrupt():
        while not sum(found.in_flight for found in service.workers()):
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        while not children:
            time.sleep(0.01)
        os.close(os.open(path, os.O_WRONLY))

    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        local.new_random_access_file(path)
    except UnavailableError as error:
        os._exit(8 if error.rule == "LD-140" and local.path_exists("/") else 9)
    if children == [0]:
        os._exit(7)
    helper.join()
    print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), local.path_exists("/"))
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


def test_the_parents_worker_outlives_a_fork_that_uses_the_plugin(run_python: PythonRunner) -> None:
    assert run_python(_APPLICATION).stdout == "b'of the parent'\n"


def test_a_child_that_is_forked_during_a_call_leaves_the_answer_to_its_parent(
    run_python: PythonRunner, tmp_path: Path
) -> None:
    assert run_python(_FORKED_IN_A_HANDLER, tmp_path / "fifo").stdout == "8 True\n"


def test_the_end_of_a_worker_is_seen_though_a_child_has_its_end_of_a_channel(
    run_python: PythonRunner,
) -> None:
    source = Path(__file__).with_name("forking_socketpair.c")
    library = link_library("libforking_socketpair.so", [compile_object(source)], ["-ldl"])
    environment = with_preloaded(os.environ, (*preloaded(os.environ), str(library)))
    child = run_python(_FORKED_WHILE_A_CHANNEL_IS_MADE, library, env=environment)
    assert child.stdout == "LD-140\n"
