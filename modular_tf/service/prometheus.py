"""Statistics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.service.statistics import OperationStatistics

_PREFIX = "modular_tf_plugin_call"
_SHOWN = range(8, 38)
"""The buckets that are shown: 256 ns to 137 s."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class _Sample(NamedTuple):
    suffix: str
    value: str
    labels: tuple[tuple[str, str], ...] = ()


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Callable[[OperationStatistics], Iterable[_Sample]]


def prometheus_text(operations: Sequence[OperationStatistics]) -> str:
    """Return the metrics of these operations, each with its HELP and TYPE."""
    return "".join(f"{line}\n" for metric in _METRICS for line in _lines(metric, operations))


def _lines(metric: _Metric, operations: Sequence[OperationStatistics]) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for operation in operations:
        named = ("plugin", operation.plugin), ("operation", operation.operation)
        for suffix, value, labels in metric.samples(operation):
            shown = ",".join(f'{n}="{text.translate(_ESCAPES)}"' for n, text in (*named, *labels))
            yield f"{metric.name}{suffix}{{{shown}}} {value}"


def _histogram(operation: OperationStatistics) -> Iterator[_Sample]:
    at_most = list(accumulate(operation.durations))
    for i in _SHOWN:
        yield _Sample("_bucket", str(at_most[i]), (("le", _seconds(1 << i)),))
    yield _Sample("_bucket", str(operation.calls), (("le", "+Inf"),))
    yield _Sample("_sum", _seconds(operation.time_ns))
    yield _Sample("_count", str(operation.calls))


def _seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09}"


def _failures(operation: OperationStatistics) -> Iterator[_Sample]:
    for code, count in operation.failures.items():
        yield _Sample("", str(count), (("status", code.name),))


_METRICS = (
    _Metric(
        f"{_PREFIX}_duration_seconds",
        "histogram",
        "Time of calls into plugins that have ended.",
        _histogram,
    ),
    _Metric(
        f"{_PREFIX}_failures_total",
        "counter",
        "Calls into plugins that ended with a status other than OK.",
        _failures,
    ),
    _Metric(
        f"{_PREFIX}_bytes_total",
        "counter",
        "Bytes that calls into plugins have read, appended or mapped.",
        lambda operation: [_Sample("", str(operation.bytes))],
    ),
    _Metric(
        f"{_PREFIX}s_under_way",
        "gauge",
        "Calls into plugins that have not ended.",
        lambda operation: [_Sample("", str(operation.under_way))],
    ),
)
