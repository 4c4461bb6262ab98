"""Devices as checks are given them."""

from __future__ import annotations

import pytest

from modular_tf.check.outcome import Pass, Verdict
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.check.trying import job_of


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_a_device_that_is_not_there_is_skipped_and_a_plugin_that_cannot_be_used_blocks(
    reached, processes
):
    absent = [(0, {"MTF_HOST_DEVICE_COUNT": "0"}), (2, {"MTF_HOST_DEVICE_COUNT": "2"})]
    unfit = [(0, {DEFECT_VARIABLE: name}) for name in ("SE-002", "SE-025", "SE-040", "SE-042")]
    library = defective_plugin("device")
    results = processes.run(
        [
            job_of(library, ["SE-200"], reached, kind="device", environment=given, ordinal=ordinal)
            for ordinal, given in (*absent, *unfit)
        ]
    )
    outcomes = [outcome for result in results for outcome in result.outcomes]

    expected = [Verdict.SKIPPED] * len(absent) + [Verdict.BLOCKED] * len(unfit)
    assert [outcome.verdict for outcome in outcomes] == expected
    assert all(o.message.startswith("the plugin has ") for o in outcomes[: len(absent)])
