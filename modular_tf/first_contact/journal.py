"""The report that the child process writes while it tries a plugin: each call before it is made.

The entries are `{"enters": CALL, "memory": USE}`, then `{"stops": 1}`, `{"lost": STREAM}`,
`{"fault": TEXT, "scarce": 0|1}` or `{"finished": OUTCOME, "memory": USE}` as the last; the
entries of the native core are described in `native/core/process_end.h`.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.processes.descendants import stat_of, status_of
from modular_tf.processes.memory_use import memory_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.processes.report import Report

IN_ORDER = 118
"""The exit status of a child that finished, and whose exit handlers and destructors returned."""
THREAD_END = "the end of the thread that opened it"
"""What is entered when a plugin is open: from then on the main thread makes the calls."""

_LONG_STOP_S = 0.05
_WATCHERS = 3  # the watcher, the process that forked it, and the application


class Journal:
    """Writes each call to the report before it is made. Used by one thread.

    `is_watched` means that the parent is a watcher. It is continued, with the processes above it,
    if a plugin has stopped all processes of its user: where the plugin is not secluded, only its
    own process can do that.
    """

    def __init__(self, report: Report, *, is_watched: bool = False) -> None:
        self.device: int | None = None  # ordinal of the device that is under trial
        self._report = report
        self._watchers = _ancestors() if is_watched else []

    def enter(self, call: str) -> None:
        """Report the next call; end the process if the last one damaged what reporting needs."""
        self._check_process()
        of_device = "" if self.device is None else f" of device {self.device}"
        self._report.write({"enters": f"{call}{of_device}", "memory": memory_use("self")})

    def finish(self, outcome: Mapping[str, object]) -> None:
        """Report that all calls returned, and the outcome."""
        self._check_process()
        self._report.write({"finished": outcome, "memory": memory_use("self")})

    def fail(self, text: str, *, is_scarce: bool) -> None:
        """Report that the host's own code failed; `is_scarce` if a shared resource ran out."""
        self._check_process()
        self._report.write({"fault": text, "scarce": int(is_scarce)})

    def _check_process(self) -> None:
        if self._watchers and _is_stopped(self._watchers[0]):
            time.sleep(_LONG_STOP_S)
            if _is_stopped(self._watchers[0]):  # else all of them were stopped for a while
                for pid in self._watchers:  # nearest first: a parent kills a stopped child
                    with suppress(OSError):
                        os.kill(pid, signal.SIGCONT)
                self._report.write({"stops": 1})
                os._exit(0)
        if lost := self._report.lost_streams():
            self._report.write({"lost": lost})
            os._exit(0)


def _ancestors() -> list[int]:
    """Return the processes above this one up to the application, the nearest first."""
    found = [os.getppid()]
    while len(found) < _WATCHERS and (stat := stat_of(found[-1])):
        found.append(int(stat[1]))
    return [pid for pid in found if pid > 0]  # 0 is outside of the PID namespace


def _is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, or is about to be."""
    with suppress(OSError):
        status = status_of(pid)
        pending = int(status["ShdPnd"], 16)
        return status["State"].startswith("T") or bool(pending >> (signal.SIGSTOP - 1) & 1)
    return False
