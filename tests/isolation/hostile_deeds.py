"""The deeds of the hostile plugin (`deeds/`), and what the user is to be told of each."""

from __future__ import annotations

from typing import NamedTuple


class Deed(NamedTuple):
    """A deed.

    Attributes:
        name: As `deeds/` has it.
        error: A regular expression for rule and message of the call's error; "" where the call
            returns, and with "|" at its beginning where it may.
        call: The call in which the plugin does it.
        probe_error: One for what later calls may report before they succeed; "" where none may.
        probe: What is done later, `file` or `list`.
        timeout: Seconds that a call may take.
        pause: Seconds between the deed and what is done later.
    """

    name: str
    error: str = ""
    call: str = "exists"
    probe_error: str = ""
    probe: str = "file"
    timeout: float = 10.0
    pause: float = 0.0


_ENDED = "LD-140 .*"
_MAY_END = f"|{_ENDED}"
_HANG_S = 2.0
_LATE = "LD-141 .*gave no answer within 2 s and was ended"
FORGED = "LD-142 "
# A new process has none of the files that the plugin has in memory.
_LOST = "(LD-14[0-4]|None new_random_access_file) "
_LIBRARY = ".*libfixture_filesystem_hostile_at_work"
# What ends the watcher too; what is left to report depends on who saw the end first.
_WATCHER = "|LD-140 .*(killed|ended|stopped)"
_ALL_IT_CAN_REACH = "LD-14[01] "


def _deeds(names, error="", **values):
    return [Deed(name, error, **values) for name in names.split()]


def _crashes(names, error):
    return _deeds(names, f"{_ENDED}{error}{_LIBRARY}")


def _hangs(names, error=_LATE, **values):
    return _deeds(names, error, timeout=_HANG_S, **values)


DEEDS = (
    *_crashes("segv segv-in-thread segv-on-small-stack", "crashed with SIGSEGV"),
    *_crashes("abort", "aborted with SIGABRT"),
    *_crashes("overflow", "overflowed the stack"),
    *_deeds("crash-at-exit become-another-that-ends", f"{_ENDED}exit status 0"),
    *_deeds("exit-3", f"{_ENDED}exit status 3"),
    *_deeds("leave", f"{_ENDED}exit status 4"),
    *_deeds("segv-later throw-in-thread", probe_error=_LOST, pause=0.5),
    *_deeds("throw", "exception left the plugin: .*hostile plugin"),
    *_deeds("corrupt-heap", _MAY_END, probe_error=_LOST),
    *_hangs("hang spin", f"{_LATE}{_LIBRARY}"),
    *_hangs("hang-deaf return-from-fault"),
    *_hangs("exit-and-hang end-thread survive-parent", _ALL_IT_CAN_REACH),
    *_hangs("jump", f"|{_ALL_IT_CAN_REACH}", probe_error=_LOST),
    *_deeds("hang-at-exit crash-when-unloaded interrupt-self"),
    *_deeds("segv", f"{_ENDED}SIGSEGV", call="read"),
    *_deeds("segv", f"{_ENDED}SIGSEGV", call="append"),
    *_hangs("hang", f"{_LATE}{_LIBRARY}", call="read"),
    # Signals.
    *_deeds("kill-self kill-group", f"{_ENDED}SIGKILL"),
    *_deeds("default-fault", f"{_ENDED}SIGSEGV"),
    *_deeds("stop-self stop-group", f"{_MAY_END}stopped by SIGSTOP", probe_error=_LOST),
    *_deeds("kill-everybody stop-parent kill-ancestors", _WATCHER, probe_error=_LOST),
    *_deeds("trace-ancestors write-to-ancestors", _WATCHER, probe_error=_LOST),
    # Memory, processes, output, limits.
    *_deeds("memory-bomb", _ENDED, timeout=60.0),
    *_deeds("thread-bomb", timeout=60.0),
    *_deeds("fork-bomb", f"{_ENDED}more than 512 processes", timeout=60.0),
    *_deeds("daemonise"),
    *_deeds("unmap-all", f"{_ENDED}SIGSEGV"),
    *_deeds("fork-and-return unmap-shared", probe_error=_LOST),
    *_deeds("become-another", _ENDED),
    *_deeds("output", timeout=120.0),
    *_deeds("limits-zero", f"|{_ALL_IT_CAN_REACH}", probe_error=_LOST),
    *_deeds("no-processor", f"{_ENDED}(SIGXCPU|SIGKILL)"),
    *_deeds("no-descriptors no-file-size leak", probe_error=f"{_LOST}|RESOURCE"),
    # Descriptors.
    *_deeds("close-all close-channels", _MAY_END),
    *_deeds("close-streams close-report"),
    *_deeds("shut-channels", _MAY_END, probe_error=_LOST),
    *_deeds("close-control", f"|{_ALL_IT_CAN_REACH}", probe_error=_LOST),
    *_deeds("own-over-channels", _ENDED),
    *_deeds("own-over-control do-not-wait-on-channels", probe_error=_LOST),
    *_hangs("move-channels", _ENDED),
    *_hangs("steal-files", "", probe_error=_LOST),
    *_deeds("forge-report", _MAY_END, timeout=60.0, probe_error=_LOST),
    *_deeds("report-without-end", timeout=60.0),
    # The process.
    *_deeds("clear-environment change-directory"),
    *_deeds("change-root change-umask change-user leave-namespaces hide trap-numbers"),
    *_deeds("change-environment", _MAY_END, probe_error=_LOST),
    *_deeds("be-traced", _ALL_IT_CAN_REACH),
    # A thread that may make no system calls any more is killed at its next one.
    *_hangs("refuse-calls", f"|{_ALL_IT_CAN_REACH}", probe_error=_ALL_IT_CAN_REACH),
    # Listings and names.
    *_hangs("endless", call="list"),
    *_deeds("many", call="list", timeout=60.0),
    *_deeds("long-name", "has no end", call="list", timeout=60.0),
    *_deeds("lying-count", _ENDED, call="list"),
    *_deeds("null-names no-array", "|.", call="list", probe_error=_LOST),
    *_deeds("segv", f"{_ENDED}SIGSEGV", call="translate"),
    *_hangs("hang", call="translate"),
    *_deeds("name-without-end", call="translate", timeout=60.0),
    # The protocol: one reply of each kind. The fuzzer of the protocol tries the others.
    *_deeds("forge-longer forge-outside forge-other-call steal-requests", probe_error=FORGED),
    *_hangs("forge-two-files", "", probe_error=_LOST),
    *_deeds("forge-unsealed forge-with-holes", probe="list", probe_error=FORGED),
    *_deeds("forge-device", probe="list", probe_error="LD-14[12] "),
    *_deeds("answer-twice answer-for-ever answer-too-long", FORGED, probe_error=_LOST),
)
