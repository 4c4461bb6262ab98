"""Trying a device in processes of its own, as the command sees them."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.ending import Ending, words_of
from modular_tf.cli.device_details import described, without_details
from modular_tf.cli.device_smoke import CHECKS, Outcome, has_work, not_tried
from modular_tf.cli.smoke_process import CLOSE, DETAILS
from modular_tf.cli.time_limit import TimeLimit
from modular_tf.concurrency.owned_file import owned_pipe
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.errors import FailedPreconditionError
from modular_tf.native.preloading import SIGNAL_STACKS, preload
from modular_tf.native.sanitizers import sanitizer_environment
from modular_tf.processes.backtrace import readable_frames
from modular_tf.processes.child_pipes import EntryReader
from modular_tf.processes.interpreter import command_like_here, find_interpreter
from modular_tf.service.configuration_keys import TELL_VARIABLE

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from io import FileIO

    from modular_tf.device.device import Device

_MODULE = "modular_tf.cli.smoke_process"
_STANDARD_ERROR = 2
_MORE_S = 10.0  # than a call may take: the process itself gives up a call that takes too long
_LOOK_EVERY_S = 0.5  # whether the process has ended, whose children may have its end of the pipe
_AT_ONCE = 1 << 16
_NOT_TRIED = "the device's process ended before"


@dataclass
class Trial:
    """The result of trying one device.

    Attributes:
        device: The device.
        outcomes: Of its checks, in their order.
        details: The plugin's details of the device; None if they were not requested.
    """

    device: Device
    outcomes: list[Outcome] = field(default_factory=list)
    details: dict[str, Any] | None = None

    @property
    def works(self) -> bool:
        """Whether all that was to be tried does."""
        return all(outcome.works is True for outcome in self.outcomes)


def try_device(device: Device, options: Namespace) -> Trial:
    """Try all checks on a device, each process going on behind the check that ended the last one.

    Args:
        device: The device; its plugin does nothing more in this process.
        options: The options of the command.

    Raises:
        FailedPreconditionError: No process can be started.
    """
    trial = Trial(device)
    if not has_work(device):  # it is no plugin's
        trial.details = described(device, TimeLimit(options.timeout))
        return trial
    left = CHECKS
    while left or (options.json and trial.details is None):
        _Run(trial, left, options).finish()
        left = CHECKS[len(trial.outcomes) :]
    return trial


class _Run:
    """One process that tries a device."""

    def __init__(self, trial: Trial, checks: Sequence[str], options: Namespace) -> None:
        self._trial = trial
        self._left = list(checks)
        self._options = options
        self._step: str | None = None
        self._since = time.monotonic()
        self._is_ready = False
        self._files: list[str] = []
        self._failed: str | None = None
        self._ending = Ending()

    def finish(self) -> None:
        """Run the process to its end, and record the outcomes."""
        reads, writes = owned_pipe()
        with reads:
            with writes:
                child = self._start(writes.fileno())
            try:
                self._listen(reads, child)
            finally:
                child.kill()  # does nothing where it has ended
                self._ending.status = child.wait()
        self._ending.backtrace = readable_frames(self._ending.frames, self._files)
        self._conclude()

    def _start(self, report: int) -> subprocess.Popen[bytes]:
        python = find_interpreter()
        if python is None:
            message = "this process is no Python command, and names none to try a device in"
            raise FailedPreconditionError(message)
        names = ("plugin", "plugin_dir", "bundled", "frozen", "json", "log", "verbose", "timeout")
        job = {
            "report": report,
            "parent": os.getpid(),
            "options": {name: getattr(self._options, name) for name in names},
            "device": self._trial.device.name,
            "checks": self._left,
        }
        sys.stderr.flush()
        return subprocess.Popen(  # noqa: S603  (this interpreter, or the one that the user named)
            command_like_here(python, _MODULE, job),
            stdin=subprocess.DEVNULL,
            stdout=_STANDARD_ERROR,  # what a plugin prints is no result
            # What ends here is told by the trial, and no reason to quarantine the plugin.
            env=preload(sanitizer_environment(os.environ), SIGNAL_STACKS) | {TELL_VARIABLE: "0"},
            pass_fds=(report,),
        )

    def _listen(self, report: FileIO, child: subprocess.Popen[bytes]) -> None:
        """Read entries until the process has ended, or takes too long."""
        reader = EntryReader(self._take)
        poll = select.poll()
        poll.register(report, select.POLLIN)
        while not self._is_late():
            if poll.poll(_LOOK_EVERY_S * 1000):
                data = report.read(_AT_ONCE)
                reader(data)
                if not data:
                    with suppress(subprocess.TimeoutExpired):
                        child.wait(self._options.timeout + _MORE_S)
                    return
            elif child.poll() is not None:
                return
        self._ending.hung = self._options.timeout

    def _is_late(self) -> bool:
        # Loading plugins takes as long as it took in the command.
        late = self._since + self._options.timeout + _MORE_S
        return self._is_ready and time.monotonic() > late

    def _take(self, entry: dict[str, Any]) -> None:
        self._since = time.monotonic()
        if self._ending.take(entry):
            return
        match entry:
            case {"ready": _}:
                self._is_ready = True
            case {"files": list(files)}:
                self._files = files
            case {"enters": str(step)}:
                self._step = step
            case {"outcome": dict(value)}:
                self._decide(Outcome.from_dict(value))
            case {"details": dict(details)}:
                self._trial.details = details
            case {"failed": str(text)}:
                self._failed = text

    def _decide(self, outcome: Outcome) -> None:
        self._left.remove(outcome.check)
        self._trial.outcomes.append(outcome)

    def _conclude(self) -> None:
        """Record how the process ended, if it did not try everything."""
        why = self._why()
        if self._left:
            elapsed_ms = (time.monotonic() - self._since) * 1e3
            self._decide(Outcome(self._left[0], works=False, elapsed_ms=elapsed_ms, message=why))
            if self._step is None:  # it would be the same with the others
                for name in list(self._left):
                    self._decide(not_tried(name, _NOT_TRIED))
        elif self._step == CLOSE and (self._failed or self._ending.status != 0):
            self._trial.outcomes.append(Outcome(CLOSE, works=False, elapsed_ms=0.0, message=why))
        if self._step in {None, DETAILS} and self._trial.details is None:
            self._trial.details = without_details(self._trial.device, why)

    def _why(self) -> str:
        if self._failed is not None:
            return self._failed
        ending = self._ending
        own = [frame for frame in ending.backtrace if not is_of_system(frame.partition(" ")[0])]
        at = "".join(f", at {frame}" for frame in [*own, *ending.backtrace][:1])
        when = "" if self._is_ready else " while plugins were loaded"
        return f"{words_of(ending)}{at}{when}"
