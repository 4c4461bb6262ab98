"""Devices as checks are given them, and host memory between guards."""

from __future__ import annotations

import ctypes
from random import Random
from unittest.mock import MagicMock

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.device.workspace import Workspace
from modular_tf.check.expectation import Deviation
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.target import Target
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


@pytest.mark.parametrize("at", [-1, 100])
def test_a_write_beside_a_host_buffer_is_seen_at_the_end_of_the_check(at):
    access = MagicMock(**{"perform.return_value": Answer(int(Code.OK))})
    device = Workspace(access, Target("", "device", Pass.RAW, ordinal=0), Random(0))
    buffer = device.buffer(bytes(range(100)), shift=3)
    ctypes.memset(buffer.address + at, 0, 1)

    with pytest.raises(Deviation, match="beside a host buffer"):
        device.close()
