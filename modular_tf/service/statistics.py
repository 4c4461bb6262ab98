"""What calls into plugins cost: counts, also in the format of Prometheus, and traces."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.native.measured_calls import CallCounts, call_counts, traced_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    # What comes after the metric's name, the value, and labels besides those of all operations.
    _Sample = tuple[str, str, tuple[tuple[str, str], ...]]

_METRIC = "modular_tf_plugin_call"
_SHOWN = range(8, 38)
"""The buckets that Prometheus gets: 256 ns to 137 s."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class OperationStatistics:
    """The calls of one operation of a plugin, since the process began or was forked.

    Attributes:
        plugin: The plugin's name.
        operation: The function of the plugin's table, as `read` or `path_exists`; `reader cleanup`,
            `writer cleanup` and `region cleanup` end what was opened.
        calls: How many have ended.
        under_way: How many have begun and not ended.
        bytes: Bytes that were read from files, appended to them, or mapped as memory regions.
        time_ns: Nanoseconds that all calls took together.
        failures: How many calls ended with a status other than OK, by status: those too that are
            an answer, as NOT_FOUND of `path_exists`.
        durations: How many calls took a time: `durations[i]` counts those of at most 2 ** i
            nanoseconds that took longer than 2 ** (i - 1); the last one those that took longer.
    """

    plugin: str
    operation: str
    calls: int
    under_way: int = 0
    bytes: int = 0
    time_ns: int = 0
    failures: Mapping[Code, int] = field(default_factory=dict)
    durations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """The calls into the plugins of a service, at one time. Immutable.

    Attributes:
        operations: One record for each operation that was called, in the order of the names of
            plugins and operations.
    """

    operations: tuple[OperationStatistics, ...]

    def prometheus(self) -> str:
        """Return the text that Prometheus reads: from an HTTP endpoint, or a `.prom` file."""
        lines = [line for metric in _METRICS for line in _lines(*metric, self.operations)]
        return "".join(f"{line}\n" for line in lines)


def statistics_of(plugins: Collection[str] | None = None) -> ServiceStatistics:
    """Return the statistics of the plugins with these names, None for all. [any thread]"""
    parts: dict[tuple[str, str], list[CallCounts]] = {}
    for counts in call_counts():
        if plugins is None or counts.plugin in plugins:
            parts.setdefault((counts.plugin, counts.operation), []).append(counts)
    whole = (_added_up(parts[names]) for names in sorted(parts))
    return ServiceStatistics(tuple(one for one in whole if one.calls or one.under_way))


def _added_up(parts: list[CallCounts]) -> OperationStatistics:
    durations = tuple(map(sum, zip(*(part.durations for part in parts), strict=True)))
    failures: Counter[Code] = Counter()
    for part in parts:
        failures.update({Code(code): count for code, count in enumerate(part.failures) if count})
    return OperationStatistics(
        plugin=parts[0].plugin,
        operation=parts[0].operation,
        calls=sum(durations),
        under_way=sum(part.under_way for part in parts),
        bytes=sum(part.n_bytes for part in parts),
        time_ns=sum(part.time_ns for part in parts),
        failures=dict(sorted(failures.items())),
        durations=durations,
    )


def trace(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Write each call into a plugin that begins and ends in the block to a file. [any thread]

    The calls are those of all threads and services of this process; a forked child writes nothing.
    The file is JSON in the array format of Chrome and Perfetto (https://ui.perfetto.dev): one
    complete event per call, with the operation as its name, the plugin as its category,
    microseconds of the monotonic clock, process and thread, and as arguments `plugin`, `subject`
    (the path without secrets, or the device), `bytes` and `status`. No event is kept in memory,
    and a regular file is whole JSON after each one, also where the process is killed.

    Args:
        path: The file, whose content is replaced; its directory exists. A pipe is written as well.

    Raises:
        FailedPreconditionError: A trace is under way in this process.
        OSError: The file cannot be written. Where that comes up during the block, it is raised at
            the end of the block, and the file has the calls until then.
    """
    return traced_calls(os.fsdecode(path))


# -- the text format of Prometheus, version 0.0.4 -------------------------------------------------


def _lines(
    name: str,
    kind: str,
    about: str,
    samples: Callable[[OperationStatistics], Iterable[_Sample]],
    operations: Iterable[OperationStatistics],
) -> Iterator[str]:
    yield f"# HELP {_METRIC}{name} {about}"
    yield f"# TYPE {_METRIC}{name} {kind}"
    for operation in operations:
        named = ("plugin", operation.plugin), ("operation", operation.operation)
        for suffix, value, labels in samples(operation):
            shown = ",".join(f'{n}="{text.translate(_ESCAPES)}"' for n, text in (*named, *labels))
            yield f"{_METRIC}{name}{suffix}{{{shown}}} {value}"


def _histogram(operation: OperationStatistics) -> Iterator[_Sample]:
    at_most = list(accumulate(operation.durations))
    for i in _SHOWN:
        yield "_bucket", str(at_most[i]), (("le", _seconds(1 << i)),)
    yield "_bucket", str(operation.calls), (("le", "+Inf"),)
    yield "_sum", _seconds(operation.time_ns), ()
    yield "_count", str(operation.calls), ()


def _seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09}"


def _failures(operation: OperationStatistics) -> Iterator[_Sample]:
    for code, count in operation.failures.items():
        yield "", str(count), (("status", code.name),)


def _bytes(operation: OperationStatistics) -> Iterator[_Sample]:
    yield "", str(operation.bytes), ()


def _under_way(operation: OperationStatistics) -> Iterator[_Sample]:
    yield "", str(operation.under_way), ()


_METRICS = (
    ("_duration_seconds", "histogram", "Time of calls into plugins that have ended.", _histogram),
    (
        "_failures_total",
        "counter",
        "Calls into plugins that ended with a status other than OK.",
        _failures,
    ),
    (
        "_bytes_total",
        "counter",
        "Bytes that calls into plugins have read, appended or mapped.",
        _bytes,
    ),
    ("s_under_way", "gauge", "Calls into plugins that have not ended.", _under_way),
)
