"""Signals while a plugin's call waits in the kernel."""

from __future__ import annotations

_BEGIN = """
import os, signal, subprocess, sys, threading
from modular_tf.service.service import PluginService

service = PluginService(plugin_paths=sys.argv[1:])
service.load()
fs = service.filesystem("restless")

def send(number, times, is_over):
    # From a thread of its own, each when the plugin waits for it. That of a child may come before.
    for came in range(times):
        while fs.get_file_size("restless://h/progress") != 1 + came:
            if is_over.wait(0.001):
                return
        signal.pthread_kill(threading.main_thread().ident, number)

def read(path, number):
    is_over, times = threading.Event(), 2 if path == "stubborn" else 1
    sender = threading.Thread(target=send, args=(number, times, is_over))
    sender.start()
    try:
        with fs.new_random_access_file("restless://h/" + path) as file:
            return file.read(0, 9)
    finally:
        is_over.set()
        sender.join()
"""


def test_handlers_run_and_the_call_has_its_answer(run_python, restless_plugin):
    """Also the user's interrupt, and signals of children, which the application reaps itself."""
    child = run_python(
        _BEGIN
        + """
for number in (signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1):
    for path, expected in (("interrupted", b"i"), ("stubborn", b"ii")):
        seen = []
        signal.signal(number, lambda *_: seen.append(1))
        answer = read(path, number)
        assert answer == expected, (number, answer)
        assert seen, number
for path in ("interrupted", "stubborn"):
    try:
        read(path, signal.SIGINT)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no interrupt")
mine = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
assert read("interrupted", signal.SIGCHLD) == b"i"
assert mine.wait() == 7
with fs.new_random_access_file("restless://after") as file:
    assert file.read(0, 9) == b"x"
assert fs.open_count == 0
service.close()
print("reached the end")
""",
        restless_plugin,
    )

    assert child.stdout == "reached the end\n"


def test_a_signal_without_a_handler_ends_the_process_as_ever(run_python, restless_plugin):
    child = run_python(_BEGIN + 'read("stubborn", signal.SIGTERM)\n', restless_plugin, status=-15)

    assert child.stdout == ""


def test_handlers_of_the_application_stay_its_own(run_python, restless_plugin, fixture_plugin):
    child = run_python(
        """
import signal, sys
numbers = [number for number in signal.valid_signals() if number not in (9, 19)]
signal.signal(signal.SIGUSR1, print)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
before = [signal.getsignal(number) for number in numbers]
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
from modular_tf.service.service import PluginService
with PluginService(plugin_paths=sys.argv[1:]) as service:
    service.load()
    assert {"restless", "fixture"} <= service.schemes().keys() and service.devices()
assert [signal.getsignal(number) for number in numbers] == before
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == {signal.SIGUSR2, *mask}
print("reached the end")
""",
        restless_plugin,
        fixture_plugin("good"),
        env={"MODULAR_TF_FIRST_CONTACT": "always"},
    )

    assert child.stdout == "reached the end\n"
