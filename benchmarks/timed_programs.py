"""Programs that do what they are asked for and time it: one that crashes or hangs is replaced."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Timing:
    """What came of doing something once.

    Attributes:
        seconds: How long it took; 0.0 if it failed.
        failure: Why there is no figure; "" if there is one.
    """

    seconds: float
    failure: str = ""


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a program that leads a session, with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class AskedProgram:
    """A program that prints its cases, and then answers to each case's name with its seconds.

    It is started at the first question, and again after it crashed or was too slow.
    """

    def __init__(self, command: Sequence[object], env: Mapping[str, str], limit_s: float) -> None:
        self._command = list(map(str, command))
        self._env = dict(env)
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self.cases: list[str] = []

    def start(self) -> str:
        """Start the program; return "" or why it cannot be asked."""
        self._process = subprocess.Popen(
            self._command, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._unread = b""
        line = self._line()
        if isinstance(line, str):
            return line
        self.cases = json.loads(line)
        return ""

    def ask(self, case: str) -> Timing:
        """Have one case done."""
        if self._process is None and (failure := self.start()):
            return Timing(0.0, failure)
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # told by the answer that is missing
            self._process.stdin.write(case.encode() + b"\n")
            self._process.stdin.flush()
        line = self._line()
        if isinstance(line, str):
            return Timing(0.0, line)
        answer = json.loads(line)
        return Timing(answer.get("seconds", 0.0), answer.get("error", ""))

    def _line(self) -> bytes | str:
        """Return the next line, or why there is none."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        deadline = time.monotonic() + self._limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    return f"no answer within {self._limit_s:.0f} s"
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    return self._end_of(process)
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _end_of(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stderr is not None
        complaint = process.stderr.read().decode(errors="replace").strip()
        self.close()
        last = complaint.splitlines()[-1] if complaint else "it said nothing"
        return f"ended with status {process.returncode}: {last}"[:300]

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            end(self._process)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
        self._process = None


def timed_command(command: Sequence[object], env: Mapping[str, str], limit_s: float) -> Timing:
    """Run a whole command."""
    start = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
        seconds = time.perf_counter() - start
    except subprocess.TimeoutExpired:
        return Timing(0.0, f"still ran after {limit_s:.0f} s")
    finally:
        end(process)
    if process.returncode:
        told = output.decode(errors="replace").strip()
        return Timing(0.0, f"ended with status {process.returncode}: {told}"[-300:])
    return Timing(seconds)
