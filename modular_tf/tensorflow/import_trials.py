"""Child processes that import TensorFlow, each with some of its plugins.

A plugin may end a process that maps it, or hang it, so doctor has children do it. They are ended
with all that they have started when the trials end, also by an interrupt.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.errors import UnavailableError
from modular_tf.native.preloading import preloaded, with_preloaded
from modular_tf.processes.ending import ChildEnding
from modular_tf.processes.interpreter import find_interpreter
from modular_tf.processes.plain_text import plain_lines
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

IMPORT_LIMIT_S = 120.0
"""Seconds that TensorFlow may take until it looks for plugins."""
FUNCTIONS = (
    "SE_InitPlugin",
    "TF_InitGraph",
    "TF_InitKernel",
    "TF_InitProfiler",
    "TFNPD_InitPlugin",
)
"""What `import tensorflow` calls in the libraries that it opens."""
FILESYSTEMS = "TF_InitPlugin"
"""What `tf.experimental.register_filesystem_plugin` calls."""

_AT_ONCE = min(4, os.cpu_count() or 1)
_WAIT_S = 0.05
_GRACE_S = 2.0  # for the fork of a plugin, which has a limit of its own
_MOST_SAID = 1 << 14
_MOST_LINES = 4
# Lines of TensorFlow's log that are no error, as "I0000 00:00:..", "2026-11-28 15:00:00.0: I ..".
_CHATTER = re.compile(
    r"\s*$|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] |WARNING: All log mess|To enable the following"
)
_FAULT = re.compile(r"^(Fatal Python error: .*|Thread 0x.*|Current thread 0x.*)", re.MULTILINE)


class ImportTrial:
    """One child that imports TensorFlow. Not started before `run_trials`.

    Attributes:
        version: Of TensorFlow; "" where it was not imported.
        schemes: Those that TensorFlow serves.
        searched: The places where TensorFlow looked for plugins.
        mapped: The functions of each file that the import has mapped, of those that are called.
        registered: What came of each plugin that was registered: status, exception, last words.
        failure: The exception that ended the import; "" for none.
        was_used: Whether the devices were counted after the import.
        is_late: Whether it was ended since its time was up.

    Args:
        files: The files of plugins that TensorFlow finds.
        environment: Of the child.
        places: The directories (or files) where TensorFlow looks for plugins.
        shown: The files that it finds there; all others are hidden from it.
        register: Plugins that are registered, each in a fork after the import.
        limit_s: Seconds that each plugin may take.
    """

    def __init__(
        self,
        files: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[str],
        shown: Sequence[str],
        register: Sequence[str] = (),
        limit_s: float,
    ) -> None:
        self.version = self.failure = ""
        self.schemes: tuple[str, ...] = ()
        self.searched: set[str] = set()
        self.mapped: dict[str, list[str]] = {}
        self.registered: dict[str, tuple[int, str, str]] = {}
        self.was_used = self.is_late = False
        self._limit_s = limit_s
        self._files = len(files)
        self._job = {
            "watched": [os.path.abspath(path) for path in files],
            "shown": [os.path.abspath(path) for path in shown],
            "places": list(places),
            "functions": [*FUNCTIONS, FILESYSTEMS],
            "register": list(register),
            "limit_s": max(1, round(limit_s)),
        }
        own = [path for path in preloaded(environment) if "libmodular_tf_" not in path]
        plain = {name: text for name, text in environment.items() if name != "LD_PRELOAD"}
        self._environment = with_preloaded(plain, own)
        self._said, self._rest = b"", b""
        self._status: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def has_started(self) -> bool:
        """Whether it was started."""
        return self._process is not None

    @property
    def is_imported(self) -> bool:
        """Whether the import has ended well."""
        return bool(self.version)

    @property
    def ending(self) -> str:
        """How it ended, in words: the exception, or the signal and the last that it wrote."""
        if self.failure:
            return self.failure
        if self.is_late:
            return f"it gave no answer within {self._limit_s:g} s"
        return ending_in_words(self._status, self._said.decode("utf-8", "replace"))

    def start(self, python_path: Sequence[str]) -> None:
        """Start the child."""
        python = find_interpreter()
        if python is None:
            raise UnavailableError("no command runs Python here, so TensorFlow cannot be imported")
        text = Path(__file__).with_name("import_child.py").read_text("utf-8")
        report, report_end = os.pipe()
        output, output_end = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._pipes = {report: self._take_report, output: self._take_words}
        for pipe, take in self._pipes.items():
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ, take)
        job = json.dumps({**self._job, "report": report_end})
        try:
            self._process = subprocess.Popen(  # noqa: S603  (this interpreter)
                [python, "-X", "faulthandler", "-c", text, job, *python_path],
                stdin=subprocess.DEVNULL,
                stdout=output_end,
                stderr=output_end,
                env=self._environment,
                pass_fds=(report_end,),
                start_new_session=True,
            )
        except OSError as error:
            raise_shortage(error)
            raise
        finally:
            os.close(report_end)
            os.close(output_end)
            if self._process is None:
                self._close_pipes()
        self._deadline = time.monotonic() + IMPORT_LIMIT_S

    def _close_pipes(self) -> None:
        self._selector.close()
        for pipe in self._pipes:
            os.close(pipe)

    def is_over(self) -> bool:
        """Take what has come; return whether the child has ended, or has had its time."""
        has_ended = self._process is None or self._process.poll() is not None
        self.is_late = not has_ended and time.monotonic() > self._deadline
        for key, _ in self._selector.select(0 if has_ended else _WAIT_S):
            try:
                while data := os.read(key.fd, 1 << 16):
                    key.data(data)
                self._selector.unregister(key.fileobj)
            except BlockingIOError:  # all of it has been taken
                continue
        return has_ended or self.is_late

    def end(self) -> None:
        """End the child and all that it has started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._status = self._process.wait()
        self._close_pipes()

    def _take_words(self, data: bytes) -> None:
        self._said = (self._said + data)[-_MOST_SAID:]

    def _take_report(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take_entry(json.loads(line))

    def _take_entry(self, entry: dict[str, Any]) -> None:
        plugins = 1
        match entry:
            case {"searched": place}:
                self.searched.add(place)
                plugins = self._files
            case {"failed": message}:
                self.failure = message
            case {"imported": version, "schemes": schemes}:
                self.version, self.schemes = version, tuple(schemes)
                plugins = self._files
            case {"mapped": path, "functions": functions}:
                self.mapped[path] = functions
            case {"registered": path, "message": message, "status": status, "said": said}:
                self.registered[path] = status, message, said
            case {"used": True}:
                self.was_used = True
        self._deadline = time.monotonic() + self._limit_s * max(1, plugins) + _GRACE_S


def ending_in_words(status: int | None, said: str) -> str:
    """Return how a process ended, and the last lines that tell why.

    Args:
        status: Its exit status, negative for a signal.
        said: The last that it wrote.
    """
    words = ChildEnding(status=status, said=said).in_words()
    fault = _FAULT.search(said)
    last = said[: fault.start()] if fault else said
    lines = [line for line in plain_lines(last).split("\n") if not _CHATTER.match(line)]
    return "\n".join([f"it {words}", *lines[-_MOST_LINES:]])


def run_trials(
    trials: Sequence[ImportTrial],
    python_path: Sequence[str],
    on_wait: Callable[[], object],
) -> None:
    """Run trials, some at once, and end all of them.

    Args:
        trials: What to run.
        python_path: Where the children import from.
        on_wait: Called again and again meanwhile.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
        UnavailableError: No command runs Python.
    """
    waiting, running = deque(trials), list[ImportTrial]()
    try:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                running.append(waiting.popleft())
                running[-1].start(python_path)
            for trial in [trial for trial in running if trial.is_over()]:
                trial.end()
                running.remove(trial)
            on_wait()
    finally:
        for trial in running:
            trial.end()
