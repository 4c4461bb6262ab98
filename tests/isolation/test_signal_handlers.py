"""Signal handlers that use the plugin whose call they interrupt."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.isolation.hostile_plugin import hostile_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.children import PythonRunner

# The plugin hangs in a call of this thread; after a while `act` runs in a handler. What it raises
# comes out of that call. A handler that waits for the call, and so for itself, ends the process.
_IN_A_HANDLER = """
    import faulthandler
    import signal
    import sys
    import time
    from modular_tf.errors import ModularTFError
    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService

    faulthandler.dump_traceback_later(60, exit=True)
    config = Config(isolation="process", plugin_dirs=(sys.argv[1],))
    service = PluginService(config=config)
    service.load()
    hostile = service.filesystem("hostile")
    hostile.new_writable_file("hostile://h/data").close()

    def interrupted(call, act):
        signal.signal(signal.SIGALRM, lambda *_: act())
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            call()
        except ModularTFError as error:
            print(type(error).__name__, error)
        else:
            print("nothing")
"""


def _told(run_python: PythonRunner, code: str) -> list[str]:
    whole = dedent(_IN_A_HANDLER) + dedent(code)
    return run_python(whole, hostile_plugin()).stdout.splitlines()


@pytest.mark.parametrize(
    "act", ["append(b'more')", "tell()", "flush()", "sync()", "close()", "discard()"]
)
def test_a_handler_cannot_use_the_file_that_it_interrupted(
    run_python: PythonRunner, act: str
) -> None:
    code = f"""
        file = hostile.new_writable_file("hostile://h/deed/append/hang")
        interrupted(lambda: file.append(b"some"), lambda: file.{act})
        print(file.closed)
    """
    told, is_closed = _told(run_python, code)

    assert told.startswith("FailedPreconditionError ")
    assert "signal handler" in told
    assert is_closed == "False"


def test_a_file_goes_on_when_a_handler_was_refused_it(run_python: PythonRunner) -> None:
    code = """
        file = hostile.open("hostile://h/deed/append/sleep", "wb", 0)

        def write():
            try:
                file.write(b"refused")
            except ModularTFError as error:
                print(type(error).__name__, error)

        interrupted(lambda: file.write(b"first"), write)
        file.write(b"second")
        print(file.tell(), file.is_torn)
        file.close()
    """
    in_handler, *after = _told(run_python, code)

    assert in_handler.startswith("FailedPreconditionError ")
    assert after == ["nothing", "11 False"]


@pytest.mark.parametrize("kind", ["append", "read"])
def test_a_handler_may_close_the_service_whose_call_it_interrupted(
    run_python: PythonRunner, kind: str
) -> None:
    opened, call, *told = {
        "append": (
            "new_writable_file",
            "append(b'some')",
            "close: the file is in use by a call of this thread",
        ),
        "read": ("new_random_access_file", "read(0, 4)"),
    }[kind]
    code = f"""
        file = hostile.{opened}("hostile://h/deed/{kind}/hang")

        def close():
            try:
                service.close()
            except ModularTFError as error:
                print(error)

        interrupted(lambda: file.{call}, close)
        print(service.closed)
    """
    *told_by_close, told_by_call, is_closed = _told(run_python, code)

    assert [line[: len(told[0])] for line in told_by_close] == told
    assert told_by_call.startswith(f"UnavailableError {kind} ")
    assert is_closed == "True"


# The process of the plugin ends, and the next one begins when `held` is removed.
_HELD = """
    import os
    import threading

    def end_worker():
        for found in service.workers():
            if found.plugin.endswith("hostile_at_work"):
                os.kill(found.pid, signal.SIGKILL)
                while os.path.exists(f"/proc/{found.pid}/fd/0"):
                    time.sleep(0.01)

    held = os.environ["HOSTILE_HELD"]

    def act():
        try:
            call()
        except ModularTFError as error:
            print(type(error).__name__, error)
        os.unlink(held)
"""


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_HELD", str(tmp_path / "held"))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("call", ["path_exists", "read"])
def test_a_handler_cannot_call_the_plugin_that_its_thread_starts(
    run_python: PythonRunner, call: str
) -> None:
    code = f"""
        hostile.stat("hostile://h/data")
        file = hostile.new_random_access_file("hostile://h/data")

        def call():
            hostile.path_exists("hostile://h/x") if {call!r} == "path_exists" else file.read(0, 1)

        end_worker()
        open(held, "w").close()
        interrupted(call, act)
        print(hostile.path_exists("hostile://h/data"))
    """
    in_handler, _, after = _told(run_python, dedent(_HELD) + dedent(code))

    assert in_handler.startswith("FailedPreconditionError ")
    assert "signal handler" in in_handler
    assert after == "False"  # the store of the plugin has gone with its process


@pytest.mark.usefixtures("held")
def test_an_interrupt_ends_the_wait_for_another_thread_that_starts_the_worker(
    run_python: PythonRunner,
) -> None:
    code = """
        def call():
            print(hostile.path_exists("hostile://h/data"))

        def interrupt():
            raise KeyboardInterrupt

        end_worker()
        open(held, "w").close()
        other = threading.Thread(target=call)
        other.start()
        time.sleep(0.5)
        try:
            interrupted(call, interrupt)
        except KeyboardInterrupt:
            print("interrupted", other.is_alive())
        os.unlink(held)
        other.join()
    """
    told = _told(run_python, dedent(_HELD) + dedent(code))

    assert told == ["interrupted True", "False"]
