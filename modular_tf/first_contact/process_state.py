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
from modular_tf.first_contact.signal_reach import reaches_python
from modular_tf.first_contact.timers import Timer, timer_changes, timers_of_process
from modular_tf.native.crash_report import signal_handlers
from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol
from modular_tf.processes.signal_names import signal_name

if TYPE_CHECKING:
    from collections.abc import Iterator

# What Python sets when it starts, and what breaks waiting for children or ending the application.
_OF_PYTHON = frozenset({signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ})
_NEVER_IGNORED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_IGNORED = 1
RULES_OF_CHANGES = frozenset({"LD-005", "LD-066", "LD-067", "LD-069", "LD-120", "LD-121", "LD-122"})
"""The rules that a child process judges by, beside those of loading; its watcher has the others."""
_LC_ALL = 6  # of glibc and musl alike
_SMALLEST = 5e-324


@dataclass(frozen=True, slots=True)
class ProcessState:
    """One look at the calling process and thread."""

    handlers: tuple[int, ...]
    blocked: frozenset[int]
    locale: bytes
    directory: str
    arithmetic: tuple[bool, bool]
    limits: ProcessLimits
    facts: dict[str, str]
    timers: frozenset[Timer]
    unseen: tuple[str, ...]

    @classmethod
    def now(cls) -> ProcessState:
        """Look; what cannot be looked at is named in `unseen`."""
        facts: dict[str, str] = {}
        timers: frozenset[Timer] = frozenset()
        unseen: list[str] = []
        for look in (status_facts, namespace_facts, file_facts, asked_facts):
            with _noting(unseen):
                facts |= look()
        with _noting(unseen):
            timers = timers_of_process()
        return cls(
            handlers=signal_handlers(),
            blocked=frozenset(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
            locale=_locale(),
            directory=_directory(),
            arithmetic=(_keeps_denormals(), _rounds_to_nearest()),
            limits=process_limits(),
            facts=facts,
            timers=timers,
            unseen=tuple(unseen),
        )


@contextmanager
def _noting(unseen: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        unseen.append(str(error))


def changes(
    before: ProcessState, after: ProcessState, own: ProcessLimits
) -> Iterator[tuple[str, str]]:
    """Yield rule and sentence for each change; the environment is compared with `os.environ`.

    Args:
        before: What the plugin found.
        after: What it left.
        own: The limits of the application.
    """
    harmed = False
    for rule_id, sentence in _changes(before, after, own):
        harmed = harmed or rule_id == "LD-120"
        yield rule_id, sentence
    unseen = [what for what in after.unseen if what not in before.unseen]
    if unseen and not harmed:  # else that is the reason
        yield "LD-122", f"left the process unable to work: {unseen[0]}"


def _changes(
    before: ProcessState, after: ProcessState, own: ProcessLimits
) -> Iterator[tuple[str, str]]:
    yield from _handler_changes(before, after)
    if blocked := sorted(after.blocked - before.blocked):
        yield "LD-066", f"blocks {', '.join(map(signal_name, blocked))}"
    if after.locale != before.locale:
        was, now = (state.locale.decode("utf-8", "replace").split(";") for state in (before, after))
        changed = ", ".join(part for part in now if part not in was)
        yield "LD-067", f"changed the locale: {changed}"
    yield from limit_changes(own, before.limits, after.limits)
    yield from fact_changes(before.facts, after.facts)
    yield from timer_changes(before.timers, after.timers)
    yield from _harmless_changes(before, after)


def _handler_changes(before: ProcessState, after: ProcessState) -> Iterator[tuple[str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for number, handler in enumerate(after.handlers):
        if handler != before.handlers[number]:
            harms = number in _NEVER_IGNORED and handler == _IGNORED
            if number in _OF_PYTHON:
                harms = not reaches_python(number)
            done = {0: "set the default action for", _IGNORED: "ignores"}.get(handler, "handles")
            found.setdefault(("LD-066" if harms else "LD-069", done), []).append(
                signal_name(number)
            )
    for (rule_id, done), names in found.items():
        yield rule_id, f"{done} {', '.join(names)}"


def _harmless_changes(before: ProcessState, after: ProcessState) -> Iterator[tuple[str, str]]:
    if after.directory != before.directory:
        yield "LD-069", f"changed the working directory to {after.directory}"
    if before.arithmetic[0] and not after.arithmetic[0]:
        yield "LD-069", "made the processor take denormal numbers for zero"
    if before.arithmetic[1] and not after.arithmetic[1]:
        yield "LD-069", "made the processor round otherwise than to the nearest"
    known = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    found = _environment()
    names = sorted(
        name for name in known.keys() | found.keys() if known.get(name) != found.get(name)
    )
    if names:
        listed = ", ".join(name.decode("utf-8", "replace") for name in names)
        yield "LD-069", f"changed environment variables: {listed}"


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "one that is gone"


def _keeps_denormals() -> bool:
    return _SMALLEST * float("1") != 0


def _rounds_to_nearest() -> bool:
    one, tiny = float("1"), float("1e-20")
    return one + tiny == one and -one - tiny == -one and one - tiny == one


def _c_symbol(name: str, kind: str) -> Any:
    """Return a symbol of the C library, as all libraries of the process see it.

    The C library's own variable is another one where the executable has a copy: `environ`, in an
    executable that is not position-independent.
    """
    address = process_symbol(name)
    return None if address is None else ffi.cast(kind, address)


def _locale() -> bytes:
    """Return the C library's own; Python's `locale` module would know of what Python changed."""
    setlocale = _c_symbol("setlocale", "char *(*)(int, char *)")
    return b"" if setlocale is None else ffi.string(setlocale(_LC_ALL, ffi.NULL))


def _environment() -> dict[bytes, bytes]:
    """Return what the C library has, so with what a plugin has put there."""
    variables = _c_symbol("environ", "char ***")
    found: dict[bytes, bytes] = {}
    entries = ffi.NULL if variables is None else variables[0]
    index = 0
    while entries and entries[index]:
        name, _, value = ffi.string(entries[index]).partition(b"=")
        found.setdefault(name, value)
        index += 1
    return found
