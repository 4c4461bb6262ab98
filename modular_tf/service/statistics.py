"""What calls into plugins cost: how many, how long, how many bytes, and how they ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.native.measured_calls import CallCounts, call_counts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


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
        from modular_tf.service.prometheus import prometheus_text  # noqa: PLC0415  (few ask for it)

        return prometheus_text(self.operations)


def statistics_of(plugins: Collection[str] | None = None) -> ServiceStatistics:
    """Return the statistics of some plugins in this process. [any thread]

    Args:
        plugins: Their names; None for all.
    """
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
