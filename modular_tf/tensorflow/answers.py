"""Answers to TensorFlow's calls: what a call gives, or the code and message of what went wrong."""

from __future__ import annotations

import _thread
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    ModularTFError,
    ResourceExhaustedError,
)
from modular_tf.events import EventLog
from modular_tf.filesystem.python_errors import error_for
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import encode
from modular_tf.tensorflow.limited_calls import LimitedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = EventLog("tensorflow")
_ANSWER = ffi.typeof("mtf_bridge_answer *")
_INTERRUPT_AFTER_S = 0.2


def copied(data: Any, size: int) -> Any:
    """Return a copy of memory that an answer may hold."""
    copy = lib.mtf_bridge_copy(data, size)
    if copy == ffi.NULL:
        raise MemoryError
    return copy


def set_text(answer: Any, text: bytes) -> None:
    """Set the text of an answer; none where there is no memory for it."""
    lib.mtf_string_free(answer.text)  # of what an interrupt has ended
    answer.text = lib.mtf_bridge_copy(text, len(text))


def set_names(answer: Any, names: Sequence[str]) -> None:
    """Set the names of an answer."""
    joined = b"".join(encode(name) + b"\0" for name in names)
    answer.names.bytes = copied(joined, len(joined))
    answer.names.count = len(names)


def set_failure(answer: Any, error: BaseException, operation: str, path: str | None) -> None:
    """Turn an exception into a code and a message."""
    if isinstance(error, KeyboardInterrupt):
        _interrupt_again()
        failure: ModularTFError = CancelledError(f"{operation}: interrupted")
    elif isinstance(error, ModularTFError):
        failure = error
    elif isinstance(error, OSError | MemoryError | EOFError | NotImplementedError):
        failure = error_for(error, path=path, operation=operation)
    else:
        said = f"{operation} {path!r}: {type(error).__name__}: {error}"
        failure = InternalError(said, path=path, operation=operation)
        _log.warning("tensorflow.upcall_failed", operation=operation, path=path, error=repr(error))
    answer.code = int(failure.code)
    rule = f" [{failure.rule}]" if failure.rule else ""
    # Always UTF-8: TensorFlow makes a str of it, and fails otherwise.
    set_text(answer, f"{failure}{rule}".encode("utf-8", "backslashreplace"))


def _interrupt_again() -> None:
    """Raise KeyboardInterrupt in the main thread a moment later: TensorFlow would lose this one.

    Not at once: it would come while TensorFlow makes an exception of the status.
    """
    with suppress(ResourceExhaustedError):
        start_thread(threading.Timer(_INTERRUPT_AFTER_S, _thread.interrupt_main))


def note_interrupt(kind: type[BaseException], _error: object, traceback: Any) -> None:
    """Keep an interrupt that came between the lines of a function that TensorFlow calls.

    What else leaves one, such as an error whose text cannot be made, stays INTERNAL.
    """
    is_interrupt = issubclass(kind, KeyboardInterrupt)
    if is_interrupt:
        _interrupt_again()
    if (answer := traceback.tb_frame.f_locals.get("answer")) is not None:
        answer.code = int(Code.CANCELLED if is_interrupt else Code.INTERNAL)


def answer_within(
    limit_s: float,
    perform: Callable[[Any], None],
    answer: Any,
    on_left: Callable[[], object],
    on_late: Callable[[Any], object],
) -> bool:
    """Have a function fill in an answer; return whether it has, or raise what it raised.

    Where it takes too long it goes on with an answer of its own.

    Args:
        limit_s: How long it may take.
        perform: The function; it must touch no memory of the caller's.
        answer: What it fills in.
        on_left: Called when it is left behind.
        on_late: Called when it ends after that, with its own answer.
    """
    own = ffi.new(_ANSWER)
    if not LimitedCall(partial(perform, own), on_left, partial(_end, own, on_late)).ends_within(
        limit_s
    ):
        return False
    answer[0] = own[0]
    return True


def _end(answer: Any, on_late: Callable[[Any], object]) -> None:
    on_late(answer)
    lib.mtf_string_free(answer.text)
    lib.mtf_string_free(answer.names.bytes)


def too_late(operation: str, path: str, plugin: str, limit_s: float) -> DeadlineExceededError:
    """Return the error for a call that was left behind."""
    return DeadlineExceededError(
        f"{operation} {path!r}: {plugin!r} gave no answer within {limit_s:g} s (call_timeout_s);"
        " the call goes on by itself and may still take effect",
        plugin=plugin,
        path=path,
        operation=operation,
    )
