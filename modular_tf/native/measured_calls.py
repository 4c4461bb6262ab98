"""Counts and traces of the calls into plugins, which the native core keeps and writes."""

from __future__ import annotations

import errno
import os
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.errors import FailedPreconditionError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import drop

if TYPE_CHECKING:
    from collections.abc import Iterator


class CallCounts(NamedTuple):
    """The calls of one operation of a plugin since the process began.

    `under_way` are calls that have not ended; `n_bytes` were read, appended or mapped; `time_ns` is
    what all calls took together. `failures` counts calls by the number of their status code.
    `durations` counts, at index i, those that took at most 2 ** i nanoseconds and longer than half
    of that; the last one counts all that took longer.
    """

    plugin: str
    operation: str
    under_way: int
    n_bytes: int
    time_ns: int
    failures: tuple[int, ...]
    durations: tuple[int, ...]


class CountedCalls:
    """Has calls counted until it is closed or collected; several may do so. [any thread]"""

    def __init__(self) -> None:
        lib.mtf_call_counts_begin()
        self.close = weakref.finalize(self, lib.mtf_call_counts_end)


def call_counts() -> list[CallCounts]:
    """Return what this process has counted; files of one name count each. [any thread]"""
    counts = ffi.new("mtf_call_counts *")
    found, at = [], lib.mtf_call_counts_next(ffi.NULL, counts)
    while at:
        found.append(
            CallCounts(
                ffi.string(counts.plugin).decode("utf-8", "replace"),
                ffi.string(counts.operation).decode(),
                counts.under_way,
                counts.bytes,
                counts.time_ns,
                tuple(counts.failures),
                tuple(counts.durations),
            )
        )
        at = lib.mtf_call_counts_next(at, counts)
    return found


@contextmanager
def traced_calls(path: str) -> Iterator[None]:
    """Write a line of JSON for each call that ends in the block.

    The file is made or emptied, and may be a pipe. `FailedPreconditionError` if a trace is under
    way in this process. `OSError` if the file cannot be written; where that comes up during the
    block, it is raised at its end, and the file has the calls until then.
    """
    numbers: list[int] = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _begin(numbers, file, path)
        yield
    except BaseException:
        _end(numbers)  # what has ended the block counts more than a trace that is not whole
        raise
    else:
        if left := _end(numbers):
            raise OSError(left, os.strerror(left), path)
    finally:
        os.close(file)


def _begin(numbers: list[int], file: int, path: str) -> None:
    failure = ffi.new("int *")
    # One step: no interrupt loses the number.
    numbers.extend(map(lib.mtf_trace_begin, (file,), (failure,)))
    if failure[0] == errno.EBUSY:
        message = f"trace {path!r}: this process writes a trace already; end it first"
        raise FailedPreconditionError(message, path=path, operation="trace")
    if not any(numbers):
        drop(lib.mtf_take_error())  # where memory ran out; else there is none
        reason = failure[0] or errno.ENOMEM
        raise OSError(reason, os.strerror(reason), path)


def _end(numbers: list[int]) -> int:
    return max((lib.mtf_trace_end(number) for number in numbers), default=0)
