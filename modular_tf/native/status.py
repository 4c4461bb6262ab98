"""Exceptions for failed native calls; native errors are freed only here.

A native call returns an error or NULL. The next statement hands it to one of the functions here,
and none of them leaves it to the caller again.
"""

from __future__ import annotations

import threading
from typing import Any

from modular_tf.errors import ClosedError, ModularTFError, error_from_code
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import decode

_FIRST_KERNEL_RULE, _FIRST_LOADER_RULE = 1000, 2000

# What signal handlers raise while a call waits for a worker in C, where no exception can pass: the
# call ends with an error, and what is kept here for the thread is raised instead of that.
_kept = threading.local()


def keep_interrupt(error: BaseException) -> None:
    """Keep what a signal handler raised, until the call on this thread has ended."""
    _kept.error = error


def is_interrupted() -> bool:
    """Return whether something is kept on this thread."""
    return getattr(_kept, "error", None) is not None


def _take_interrupt() -> BaseException | None:
    error: BaseException | None = getattr(_kept, "error", None)
    _kept.error = None
    return error


def take_error(
    error: Any, *, plugin: str | None = None, path: str | None = None, operation: str | None = None
) -> ModularTFError:
    """Turn a native error into an exception, not raised, and free it.

    `error` is an `mtf_error *`, NULL where none was kept; the caller must not use it again. What a
    signal handler raised while the call waited for a worker is raised here.
    """
    if not error:  # a signal handler between the call and this took what the core had kept
        text = f"{operation or 'a call'}: the native core failed and kept no reason"
        return error_from_code(13, text, plugin=plugin, path=path, operation=operation)
    try:
        code, message = error.code, decode(ffi.string(error.message))
        thrown, closed, broken = error.thrown, error.closed, error.rule
    finally:
        lib.mtf_error_free(error)
    if broken > _FIRST_LOADER_RULE and (interrupt := _take_interrupt()) is not None:
        raise interrupt
    if thrown:
        message = f"a C++ exception left the plugin: {message}"
    where = " ".join(part for part in (operation, repr(path) if path is not None else None) if part)
    text = f"{where}: {message}" if where else message
    if plugin:
        text = f"{text} (plugin {plugin})"
    if closed:
        return ClosedError(text, plugin=plugin, path=path, operation=operation)
    rule = _rule_of(broken)
    return error_from_code(code, text, plugin=plugin, path=path, operation=operation, rule=rule)


def _rule_of(number: int) -> str | None:
    """Return the rule of a number of `mtf_error.rule`, None for 0."""
    if number > _FIRST_LOADER_RULE:
        return f"LD-{number - _FIRST_LOADER_RULE:03}"
    if number > _FIRST_KERNEL_RULE:
        return f"KN-{number - _FIRST_KERNEL_RULE:03}"
    return f"SE-{number:03}" if number else None


def failure_unless(
    error: Any,
    expected: int,
    *,
    plugin: str | None = None,
    path: str | None = None,
    operation: str | None = None,
) -> ModularTFError | None:
    """Free a native error; return None where its code is `expected`, else it as an exception.

    For codes that are an answer: `take_error` costs more. `error` is a non-NULL `mtf_error *`; the
    caller must not use it again.
    """
    if error.code != expected:
        return take_error(error, plugin=plugin, path=path, operation=operation)
    lib.mtf_error_free(error)
    return None


def check(
    error: Any, *, plugin: str | None = None, path: str | None = None, operation: str | None = None
) -> None:
    """Raise what a native call reported, as the class of its status code; return for NULL."""
    if error:
        raise take_error(error, plugin=plugin, path=path, operation=operation)


def drop(error: Any) -> None:
    """Free a native error, or NULL, that cannot be reported."""
    lib.mtf_error_free(error)
