"""The soak finds what it is there to find; and a few seconds of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.soak.measures import Sample, take_sample, trends

_STILL = Sample(memory_mib=100.0, descriptors=40, threads=12, mappings=500)


def _growing(measure="memory_mib", slope=0.0):
    value = getattr(_STILL, measure)
    return [replace(_STILL, **{measure: value + at * slope}) for at in range(150)]


@pytest.mark.parametrize(
    ("measure", "slope"),
    [("memory_mib", 0.2), ("descriptors", 0.1), ("threads", 0.05), ("mappings", 0.5)],
)
def test_what_goes_on_growing_is_not_flat(measure, slope):
    growing = [trend.name for trend in trends(_growing(measure, slope)) if not trend.is_flat]

    assert growing == [measure]


def test_what_grows_only_at_first_is_flat():
    samples = [Sample(50.0, 10, 4, 200)] * 25 + [_STILL] * 125

    assert all(trend.is_flat for trend in trends(samples))


def test_a_few_samples_are_no_trend():
    with pytest.raises(ValueError, match="5 samples are too few"):
        trends(_growing()[:5])


def test_a_sample_sees_what_this_process_opens(tmp_path):
    before = take_sample()
    with (tmp_path / "f").open("w"):
        during = take_sample()

    assert during.descriptors == before.descriptors + 1
    assert during.threads >= 1
    assert during.mappings > 10
    assert during.memory_mib > 1


def test_some_seconds_of_it(run_python, tmp_path):
    child = run_python(
        """
        from pathlib import Path
        import sys
        from tests.soak.campaign import Campaign
        outcome = Campaign(7, Path(sys.argv[1])).run(1, 0.25, lambda outcome: None)
        print(*outcome.errors, sep="\\n")
        print(outcome.jobs.total() > 0, len(outcome.samples) > 0)
        """,
        tmp_path,
    )

    assert child.stdout == "\nTrue True\n"
