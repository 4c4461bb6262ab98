"""What uses the default service while it is made, and has to be served: one case after another.

Argument: a file to write to. Each case closes the service, so that the next makes another one.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import threading
from contextlib import contextmanager, suppress

from modular_tf import gfile
from modular_tf.errors import UnimplementedError
from modular_tf.service.default import default_service
from modular_tf.service.service import PluginService
from tests.service.test_hooks import hooks

FILE = sys.argv[1]
used: list[bool] = []


def use():
    gfile.makedirs("ram://host/folder")
    with gfile.GFile(FILE, "a") as file:
        file.write("used\n")
    used.append(gfile.exists(FILE))


@contextmanager
def hooked(name, function):
    """Have the services that are made meanwhile call a function as a hook."""
    make, given = PluginService.__init__, [hooks(f"modular_tf_{name}", function)]
    PluginService.__init__ = lambda self, **options: make(self, hooks=given, **options)
    try:
        yield
    finally:
        PluginService.__init__ = make


def a_log_handler():
    class ToStore(logging.Handler):
        def emit(self, record):
            heard.append(record.event["event"])
            use()

    heard, handler, log = [], ToStore(), logging.getLogger("modular_tf")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    gfile.exists(FILE)
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)
    assert "plugin.processed" in heard


def every_hook():
    answers = {
        "plugin_paths": lambda: use() or [],
        "filesystems": lambda: use() or {},
        "device_factories": lambda: use() or [],
        "outcome": use,
    }
    for name, function in answers.items():
        used.clear()
        with hooked(name, function):
            gfile.exists(FILE)
        require_service(name)


def signal_handlers():
    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_name == step:
            sys.setprofile(None)
            threading.setprofile(None)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    signal.signal(signal.SIGALRM, lambda *_: used or use())
    for step in ("discover", "recall", "judge", "open_now", "open_filesystem", "enter"):
        used.clear()
        threading.setprofile(profile)
        sys.setprofile(profile)
        gfile.exists(FILE)
        sys.setprofile(None)
        threading.setprofile(None)
        require_service(step)


def first_veto(go_on):
    """Return a veto that uses the service in vain when it is asked first, and goes on."""
    asked = []

    def veto():
        if not asked:
            asked.append(True)
            with suppress(UnimplementedError):
                use()
                raise AssertionError("something served already")
            go_on()

    return veto


def a_hook_after_which_the_making_is_interrupted():
    def interrupt():
        raise KeyboardInterrupt

    with hooked("veto", first_veto(interrupt)):
        try:
            gfile.exists(FILE)
        except KeyboardInterrupt:
            use()
    assert used == [True]


def another_thread_than_the_hooks():
    def go_on():
        other = threading.Thread(target=use)
        other.start()
        other.join()
        assert used == [True]

    with hooked("veto", first_veto(go_on)):
        gfile.exists(FILE)


def require_service(case):
    """Require one service that serves all, and close it."""
    assert used, case
    assert all(used), (case, used)
    assert gfile.exists(FILE), case
    assert gfile.exists("ram://host/folder"), case
    assert default_service() is default_service(), case
    assert default_service().devices(), case
    default_service().close()


def main():
    faulthandler.dump_traceback_later(100, exit=True)
    for case in (
        a_log_handler,
        every_hook,
        signal_handlers,
        a_hook_after_which_the_making_is_interrupted,
        another_thread_than_the_hooks,
    ):
        print(case.__name__, flush=True)
        used.clear()
        case()
        if case not in (every_hook, signal_handlers):
            require_service(case.__name__)


if __name__ == "__main__":
    main()
