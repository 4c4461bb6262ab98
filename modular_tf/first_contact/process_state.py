"""Process-wide state, compared before and after a plugin ran."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.first_contact.process_facts import (
    asked_facts,
    fact_changes,
    file_facts,
    namespace_facts,
    status_facts,
)
from modular_tf.first_contact.process_limits import ProcessLimits, limit_changes, process_limits
from modular_tf.first_contact.process_use import process_use, use_changes
from modular_tf.first_contact.signal_reach import reaches_python
from modular_tf.first_contact.timers import Timer, timer_changes, timers_of_process
from modular_tf.native.crash_report import signal_handlers
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import process_symbol
from modular_tf.processes.plain_text import plain
from modular_tf.processes.signal_names import signal_name
from modular_tf.rules import Violation
from modular_tf.rules import first_contact as rules
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.rules import Rule

# Signals whose handling Python sets at its start; and those without which waiting for children or
# ending the application fails.
_OF_PYTHON = frozenset({signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ})
_NEVER_IGNORED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_IGNORED = 1
RULES_OF_CHANGES = frozenset(
    {
        WHOLE_ELF,
        rules.SIGNAL_HANDLERS_KEPT,
        rules.LOCALE_KEPT,
        rules.PROCESS_STATE_KEPT,
        rules.RIGHTS_KEPT,
        rules.NO_FATAL_TIMER,
        rules.PROCESS_USABLE,
    }
)
"""The rules that the child checks besides those of loading; its watcher checks the others."""
_OF_PROGRAMS = frozenset(
    b"BASH_ENV ENV GCONV_PATH GLIBC_TUNABLES PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP".split()
)
_LC_ALL = 6  # of glibc and musl alike
_ARITHMETIC = {  # native/core/float_state.h
    1: "changed which floating-point exceptions end the process",
    2: "made the processor take denormal numbers for zero",
    4: "made the processor round otherwise",
}


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state of the calling process and thread at one moment."""

    handlers: tuple[int, ...]
    blocked: frozenset[int]
    locale: bytes
    directory: str
    arithmetic: int
    limits: ProcessLimits
    facts: dict[str, str]
    timers: frozenset[Timer]
    use: dict[str, int]
    unseen: tuple[str, ...]

    @classmethod
    def now(cls) -> ProcessState:
        """Return the present state; errors of what cannot be read are in `unseen`."""
        facts: dict[str, str] = {}
        timers: frozenset[Timer] = frozenset()
        use: dict[str, int] = {}
        unseen: list[str] = []
        for look in (status_facts, namespace_facts, file_facts, asked_facts):
            with _noting(unseen):
                facts |= look()
        with _noting(unseen):
            timers = timers_of_process()
        with _noting(unseen):
            use = process_use()
        return cls(
            handlers=signal_handlers(),
            blocked=frozenset(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
            locale=_locale(),
            directory=_directory(),
            arithmetic=lib.mtf_undone_float_changes(),
            limits=process_limits(),
            facts=facts,
            timers=timers,
            use=use,
            unseen=tuple(unseen),
        )


@contextmanager
def _noting(unseen: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        unseen.append(str(error))


def changes(before: ProcessState, after: ProcessState, own: ProcessLimits) -> Iterator[Violation]:
    """Yield a violation for each change; the environment is compared with `os.environ`.

    Args:
        before: The state before the plugin ran.
        after: The state after it ran.
        own: The limits of the application.
    """
    harmed = False
    for change in _changes(before, after, own):
        harmed = harmed or change.rule == rules.RIGHTS_KEPT
        yield change
    unseen = [what for what in after.unseen if what not in before.unseen]
    if unseen and not harmed:  # else the lost rights are the reason
        yield Violation(rules.PROCESS_USABLE, f"left the process unable to work: {unseen[0]}")


def child_changes(child: int) -> Iterator[Violation]:
    """Yield a violation if the status of a child is gone that ended before the plugin ran.

    Args:
        child: Its number, -1 for none.
    """
    try:
        if child > 0:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        yield Violation(
            rules.RIGHTS_KEPT,
            "took the exit status of a child process that it had not started (it waits for any)",
        )


def _changes(before: ProcessState, after: ProcessState, own: ProcessLimits) -> Iterator[Violation]:
    yield from _handler_changes(before, after)
    if blocked := sorted(after.blocked - before.blocked):
        yield Violation(
            rules.SIGNAL_HANDLERS_KEPT, f"blocks {', '.join(map(signal_name, blocked))}"
        )
    if after.locale != before.locale:
        was, now = (state.locale.decode("utf-8", "replace").split(";") for state in (before, after))
        changed = ", ".join(part for part in now if part not in was)
        yield Violation(rules.LOCALE_KEPT, f"changed the locale: {changed}")
    yield from limit_changes(own, before.limits, after.limits)
    yield from fact_changes(before.facts, after.facts)
    yield from timer_changes(before.timers, after.timers)
    yield from use_changes(before.use, after.use, own)
    yield from _harmless_changes(before, after)


def _handler_changes(before: ProcessState, after: ProcessState) -> Iterator[Violation]:
    found: dict[tuple[Rule, str], list[str]] = {}
    for number, handler in enumerate(after.handlers):
        if handler != before.handlers[number]:
            harms = number in _NEVER_IGNORED and handler == _IGNORED
            if number in _OF_PYTHON:
                harms = not reaches_python(number)
            done = {0: "set the default action for", _IGNORED: "ignores"}.get(handler, "handles")
            found.setdefault(
                (rules.SIGNAL_HANDLERS_KEPT if harms else rules.PROCESS_STATE_KEPT, done), []
            ).append(signal_name(number))
    for (broken, done), names in found.items():
        yield Violation(broken, f"{done} {', '.join(names)}")


def _harmless_changes(before: ProcessState, after: ProcessState) -> Iterator[Violation]:
    if after.directory != before.directory:
        yield Violation(
            rules.PROCESS_STATE_KEPT, f"changed the working directory to {after.directory}"
        )
    for bit, done in _ARITHMETIC.items():
        if after.arithmetic & ~before.arithmetic & bit:
            yield Violation(rules.PROCESS_STATE_KEPT, f"{done}; that was undone")
    known = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    yield from _environment_changes(known, _environment())


def _environment_changes(
    before: Mapping[bytes, bytes], after: Mapping[bytes, bytes]
) -> Iterator[Violation]:
    """Yield what a plugin did to the environment, which programs that are started later inherit.

    Args:
        before: The variables before it ran, as `_environment` gives them.
        after: Those after it ran.
    """
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    of_programs = [name for name in changed if _decides_about_programs(name)]
    others = [name for name in changed if name not in of_programs]
    if others:
        listed = ", ".join(name.decode("utf-8", "replace") for name in others)
        yield Violation(rules.PROCESS_STATE_KEPT, f"changed environment variables: {listed}")
    if of_programs:
        listed = ", ".join(_shown_variable(name, after.get(name)) for name in of_programs)
        message = f"changed what programs that are started from now on load or run: {listed}"
        yield Violation(rules.PROCESS_STATE_KEPT, message)


def _decides_about_programs(name: bytes) -> bool:
    return name.startswith(b"LD_") or name in _OF_PROGRAMS


def _shown_variable(name: bytes, value: bytes | None) -> str:
    shown = name.decode("utf-8", "replace")
    return f"{shown} is gone" if value is None else f"{shown}={plain(os.fsdecode(value))!r}"


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "one that is gone"


def _c_symbol(name: str, kind: str) -> Any:
    """Return a symbol of the C library, as all libraries of the process see it.

    The C library's own variable is another one where the executable has a copy: `environ`, in an
    executable that is not position-independent.
    """
    address = process_symbol(name)
    return None if address is None else ffi.cast(kind, address)


def _locale() -> bytes:
    """Return the locale of the C library; Python's `locale` module knows only Python's changes."""
    setlocale = _c_symbol("setlocale", "char *(*)(int, char *)")
    return b"" if setlocale is None else ffi.string(setlocale(_LC_ALL, ffi.NULL))


def _environment() -> dict[bytes, bytes]:
    """Return the variables of the C library, so with those that a plugin has set."""
    variables = _c_symbol("environ", "char ***")
    found: dict[bytes, bytes] = {}
    entries = ffi.NULL if variables is None else variables[0]
    index = 0
    while entries and entries[index]:
        name, _, value = ffi.string(entries[index]).partition(b"=")
        found.setdefault(name, value)
        index += 1
    return found
