"""Ctrl-C while a plugin does not return: the second one leaves, and names call and plugin."""

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.filesystem.ending import ending_plugin

_PATIENCE_S = 120
_LOOKS = 50
_SLEEPING = ("35 ", "230 ", "115 ")  # nanosleep and clock_nanosleep
_ON_SMALL_STACK = """
import sys
from tests.fixtures.signal_stack import use_small_stack
use_small_stack()
from modular_tf.__main__ import main
sys.exit(main())
"""
_COMMAND = [sys.executable, "-m", "modular_tf"]
_AGAIN = b"Ctrl-C again leaves at once\n"


@pytest.fixture(scope="module")
def library():
    """The plugin, whose read and close do not return."""
    return ending_plugin()


class Hanging:
    """A command, with what it says on standard error."""

    def __init__(self, command):
        self.child = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.said = b""

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def read_until(self, words):
        while words not in self.said:
            if not select.select([self.child.stderr], [], [], _PATIENCE_S)[0]:
                return False
            piece = os.read(self.child.stderr.fileno(), 4096)
            if not piece:
                return words in self.said
            self.said += piece
        return True

    def wait_for_nap(self):
        """Wait until some thread sleeps long: the host sleeps too, but for less than a look."""
        tasks = Path(f"/proc/{self.child.pid}/task")
        looks = {}
        for _ in range(_PATIENCE_S * 100):
            for task in tasks.iterdir():
                with suppress(OSError):  # a thread that has ended since it was listed
                    is_asleep = (task / "syscall").read_text().startswith(_SLEEPING)
                    looks[task] = looks.get(task, 0) + 1 if is_asleep else 0
            if max(looks.values(), default=0) >= _LOOKS:
                return
            select.select([], [], [], 0.01)
        raise AssertionError("the plugin was never reached")


@contextmanager
def hanging(library, *words, start=_COMMAND):
    """Run a command until the plugin does not return."""
    command = Hanging([*start, "--plugin", library, *words])
    try:
        command.wait_for_nap()
        yield command
    finally:
        command.child.kill()
        command.child.communicate()


def test_the_first_interrupt_names_the_plugin_and_the_second_leaves(library):
    """Also where the stack for signals is small."""
    start = [sys.executable, "-c", _ON_SMALL_STACK]
    with hanging(library, "fs", "cat", "ending://h/hang", start=start) as command:
        command.interrupt()
        assert command.read_until(_AGAIN), command.said
        assert b"waiting for plugin ending, read of 'ending://h/hang'" in command.said
        assert command.child.poll() is None
        command.interrupt()

        assert command.child.wait(_PATIENCE_S) == 130
        command.read_until(b"second Ctrl-C\n")
        text = command.said.decode().splitlines()[-1]
        assert text.startswith("modular-tf: left in plugin ending, read of 'ending://h/hang' (")
        assert str(library) in text


def test_one_interrupt_ends_a_copy_whose_plugin_stores_for_minutes(library, tmp_path):
    """Of a plugin that is no object store nobody knows what is left."""
    (tmp_path / "source").write_bytes(b"x" * 1000)
    target = "ending://h/close/600"
    with hanging(library, "fs", "cp", tmp_path / "source", target) as command:
        command.interrupt()
        assert command.child.wait(_PATIENCE_S) == 130
        command.read_until(b"nothing")
        text = command.said.decode()

    assert "modular-tf: interrupted; 0 files done\n" in text
    assert f"{target}: the copy was given up; the target may be torn" in text
    assert "Ctrl-C again" not in text
