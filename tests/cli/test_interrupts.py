"""Ctrl-C while a plugin does not return: the second one leaves, and tells whose call it was."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.filesystem.ending import ending_plugin

_PATIENCE_S = 120
_LOOKS = 50
_HANGS = "ending://h/hang"
_ON_SMALL_STACK = """
import sys
from tests.fixtures.signal_stack import use_small_stack
use_small_stack()
from modular_tf.__main__ import main
sys.exit(main())
"""
_COMMAND = [sys.executable, "-m", "modular_tf", "--plugin"]


@pytest.fixture(scope="module")
def library():
    """The plugin, whose read does not return."""
    return ending_plugin()


class Hanging:
    """A command, with what it says on standard error."""

    def __init__(self, command, *words):
        command = [*command, *(str(word) for word in words)]
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.said = b""

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def end(self):
        self.child.kill()
        self.child.communicate()

    def read_until(self, words, patience_s):
        while words not in self.said:
            if not select.select([self.child.stderr], [], [], patience_s)[0]:
                return False
            piece = os.read(self.child.stderr.fileno(), 4096)
            if not piece:
                return words in self.said
            self.said += piece
        return True


def hang(library, start=_COMMAND):
    """Return a command in a read that does not return."""
    command = Hanging(start, library, "fs", "cat", _HANGS)
    syscall = Path(f"/proc/{command.child.pid}/syscall")
    looks = 0
    for _ in range(_PATIENCE_S * 100):
        numbers = ("35 ", "230 ", "115 ")  # nanosleep and clock_nanosleep
        looks = looks + 1 if syscall.read_text().startswith(numbers) else 0
        if looks == _LOOKS:  # the host sleeps as well, but for less than a look takes
            return command
        select.select([], [], [], 0.01)
    raise AssertionError("the read was never reached")


def test_the_first_interrupt_names_the_plugin_that_is_waited_for(library):
    command = hang(library)
    command.interrupt()

    assert command.read_until(b"Ctrl-C again leaves at once\n", _PATIENCE_S), command.said
    assert b"waiting for plugin ending, read of 'ending://h/hang'" in command.said
    assert command.child.poll() is None
    command.end()


def test_the_second_interrupt_leaves_and_names_the_plugin(library):
    command = hang(library)
    command.interrupt()
    assert command.read_until(b"Ctrl-C again leaves at once\n", _PATIENCE_S), command.said
    command.interrupt()

    assert command.child.wait(_PATIENCE_S) == 130
    command.read_until(b"second Ctrl-C\n", _PATIENCE_S)
    text = command.said.decode().splitlines()[-1]
    assert text.startswith("modular-tf: left in plugin ending, read of 'ending://h/hang' (")
    assert str(library) in text
    command.end()


def test_an_interrupt_is_told_on_a_small_stack_for_signals(library):
    command = hang(library, [sys.executable, "-c", _ON_SMALL_STACK, "--plugin"])
    command.interrupt()
    assert command.read_until(b"Ctrl-C again leaves at once\n", _PATIENCE_S), command.said
    assert command.child.poll() is None
    command.end()


@pytest.fixture
def interrupted(library, tmp_path):
    """Interrupt a copy to the plugin that the path names; return its exit status and words."""

    def interrupt(target):
        (tmp_path / "source").write_bytes(b"x" * 1000)
        command = Hanging(_COMMAND, library, "fs", "cp", tmp_path / "source", target)
        try:
            wait_for_nap(command.child.pid)
            command.interrupt()
            status = command.child.wait(_PATIENCE_S)
            command.read_until(b"nothing", _PATIENCE_S)
            return status, command.said.decode()
        finally:
            command.end()

    return interrupt


def wait_for_nap(pid):
    """Wait until some thread of a process sleeps long."""
    looks = dict.fromkeys(Path(f"/proc/{pid}/task").iterdir(), 0)
    for _ in range(_PATIENCE_S * 100):
        for task in Path(f"/proc/{pid}/task").iterdir():
            is_asleep = (task / "syscall").read_text().startswith(("35 ", "230 ", "115 "))
            looks[task] = looks.get(task, 0) + 1 if is_asleep else 0
        if max(looks.values()) >= _LOOKS:
            return
        select.select([], [], [], 0.01)
    raise AssertionError("the plugin was never reached")


def test_one_interrupt_ends_a_copy_whose_plugin_stores_for_minutes(interrupted):
    """Of a plugin that is no object store nobody knows what is left."""
    status, said = interrupted("ending://h/close/600")

    assert status == 130
    assert "modular-tf: interrupted; 0 files done\n" in said
    assert "ending://h/close/600: the copy was given up; the target may be torn" in said
    assert "Ctrl-C again" not in said
