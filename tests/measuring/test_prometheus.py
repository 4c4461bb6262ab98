"""Statistics as Prometheus reads them."""

from __future__ import annotations

import re

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.service.statistics import OperationStatistics, ServiceStatistics

_SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} ([0-9.]+)')
_LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
_DURATION = "modular_tf_plugin_call_duration_seconds"


def _samples(text):
    """Return the value of each sample by its name and the values of its labels."""
    assert text.endswith("\n")
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            labels = tuple(value for _, value in _LABEL.findall(match[2]))
            assert (match[1], labels) not in found
            found[match[1], labels] = float(match[3])
    return found


def _operation(**values):
    durations = [0] * 40
    durations[3], durations[20], durations[39] = 1, 4, 2
    given = {"calls": 7, "durations": tuple(durations), "time_ns": 1_500_000_001, **values}
    return OperationStatistics(plugin="p", operation="read", **given)


def test_a_histogram_is_cumulative_beside_bytes_failures_and_calls_under_way():
    operation = _operation(bytes=12, under_way=3, failures={Code.NOT_FOUND: 2, Code.INTERNAL: 1})
    samples = _samples(ServiceStatistics((operation,)).prometheus())
    buckets = {labels[2]: n for (name, labels), n in samples.items() if name.endswith("_bucket")}

    assert list(buckets.values()) == sorted(buckets.values())
    bounds = [float(bound) for bound in buckets]
    assert bounds == sorted(bounds)
    assert (buckets["0.000000256"], buckets["0.000524288"]) == (1, 1)
    assert (buckets["0.001048576"], buckets["+Inf"]) == (5, 7)
    assert samples[f"{_DURATION}_count", ("p", "read")] == 7
    assert samples[f"{_DURATION}_sum", ("p", "read")] == pytest.approx(1.500000001)

    assert samples["modular_tf_plugin_call_bytes_total", ("p", "read")] == 12
    assert samples["modular_tf_plugin_calls_under_way", ("p", "read")] == 3
    failures = "modular_tf_plugin_call_failures_total"
    assert samples[failures, ("p", "read", "NOT_FOUND")] == 2
    assert samples[failures, ("p", "read", "INTERNAL")] == 1


def test_every_metric_says_what_it_is():
    text = ServiceStatistics((_operation(failures={Code.ABORTED: 1}),)).prometheus()

    types = dict(re.findall(r"^# TYPE ([a-z_]+) ([a-z]+)$", text, re.MULTILINE))
    helps = re.findall(r"^# HELP ([a-z_]+) \S.*$", text, re.MULTILINE)
    of_samples = {re.sub("_(bucket|sum|count)$", "", name) for name, _ in _samples(text)}
    assert set(types) == set(helps) == of_samples
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in types.items())


def test_labels_are_escaped():
    operation = OperationStatistics('a"b\\c\nd', "read", 0, durations=(0,) * 40)
    samples = _samples(ServiceStatistics((operation,)).prometheus())

    assert {labels[0] for _, labels in samples} == {r"a\"b\\c\nd"}
