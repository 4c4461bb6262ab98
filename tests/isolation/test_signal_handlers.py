"""Signal handlers that use the plugin whose call they interrupt."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.isolation.hostile_plugin import hostile_plugin

# The plugin hangs in a call of this thread, during which `act` runs in a handler. What it raises
# comes out of that call. A handler that waits for the call, and so for itself, ends the process.
_IN_A_HANDLER = """
    import faulthandler
    import os
    import signal
    import sys
    import threading
    from modular_tf.errors import ModularTFError
    from tests.isolation.conftest import (
        during_a_call, end_worker, isolated, wait_until, when_the_next_process_waits,
    )

    faulthandler.dump_traceback_later(60, exit=True)
    manager = isolated(sys.argv[1], bundled=False)
    service = manager.__enter__()
    hostile = service.filesystem("hostile")
    hostile.new_writable_file("hostile://h/data").close()

    def attempt(act):
        try:
            act()
        except ModularTFError as error:
            print(type(error).__name__, error)
        else:
            print("nothing")

    def interrupted(call, act):
        signal.signal(signal.SIGALRM, lambda *_: act())
        with during_a_call(service, lambda: os.kill(os.getpid(), signal.SIGALRM)):
            attempt(call)
"""
# The process of the plugin ends, and the next one begins when `held` is removed.
_HELD = """
    held = os.environ["HOSTILE_HELD"]
    end_worker(service, service.workers()[0].plugin)
    open(held, "w").close()

    def interrupted(call, act):  # the start of a process is no call yet
        when_the_next_process_waits(held, act)
        attempt(call)
"""
_REFUSED = "FailedPreconditionError "


def _lines(run_forked, *code, **options):
    whole = "".join(map(dedent, (_IN_A_HANDLER, *code)))
    return run_forked(whole, hostile_plugin(), **options).stdout.splitlines()


def test_a_handler_cannot_use_the_file_that_it_interrupted(run_forked):
    acts = ["append(b'more')", "tell()", "flush()", "sync()", "close()", "discard()"]
    code = f"""
        for act in {acts!r}:
            file = hostile.new_writable_file("hostile://h/deed/append/hang")
            interrupted(lambda: file.append(b"some"), lambda: eval("file." + act))
            print(act, file.closed)
            end_worker(service, service.workers()[0].plugin)

        file = hostile.open("hostile://h/deed/append/sleep", "wb", 0)
        interrupted(lambda: file.write(b"first"), lambda: attempt(lambda: file.write(b"refused")))
        file.write(b"second")
        print(file.tell(), file.is_torn)
        file.close()
    """
    *of_acts, refused, nothing, after = _lines(run_forked, code)

    assert of_acts[1::2] == [f"{act} False" for act in acts]
    for line in (*of_acts[::2], refused):
        assert line.startswith(_REFUSED)
        assert "signal handler" in line
    assert (nothing, after) == ("nothing", "11 False")


@pytest.mark.parametrize("kind", ["append", "read"])
def test_a_handler_may_close_the_service_whose_call_it_interrupted(run_forked, kind):
    opened, call, expected = {
        "append": (
            "new_writable_file",
            "append(b'some')",
            f"{_REFUSED}close: the file is in use by a call of this thread",
        ),
        "read": ("new_random_access_file", "read(0, 4)", "nothing"),
    }[kind]
    code = f"""
        file = hostile.{opened}("hostile://h/deed/{kind}/hang")
        interrupted(lambda: file.{call}, lambda: attempt(service.close))
        print(service.closed)
    """
    by_close, by_call, is_closed = _lines(run_forked, code)

    assert by_close.startswith(expected)
    # The process of a busy machine may not have begun with the call, which is made again then.
    assert by_call.startswith((f"UnavailableError {kind} ", f"ClosedError {kind} "))
    assert is_closed == "True"


@pytest.mark.parametrize("call", ["hostile.path_exists('hostile://h/x')", "file.read(0, 1)"])
def test_a_handler_cannot_call_the_plugin_that_its_thread_starts(run_forked, tmp_path, call):
    code = f"""
        def act():
            attempt(lambda: {call})
            os.unlink(held)

        interrupted(lambda: {call}, act)
        print(hostile.path_exists("hostile://h/data"))
    """
    opening = """
        hostile.stat("hostile://h/data")
        file = hostile.new_random_access_file("hostile://h/data")
    """
    held = {"HOSTILE_HELD": str(tmp_path / "held")}
    in_handler, _, after = _lines(run_forked, opening, _HELD, code, env=held)

    assert in_handler.startswith(_REFUSED)
    assert "signal handler" in in_handler
    assert after == "False"  # the store of the plugin has gone with its process
