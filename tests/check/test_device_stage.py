"""Devices as checks are given them, and host memory between guards."""

from __future__ import annotations

import pytest

from modular_tf.check.device.workspace import HostBuffer
from modular_tf.check.expectation import Deviation
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.native.fresh_host_memory import address_of
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


@pytest.mark.parametrize(("size", "shift"), [(0, 0), (1, 63), (100, 1), (1 << 20, 0)])
def test_a_host_buffer_lies_where_it_is_wanted(size, shift):
    buffer = HostBuffer(size, shift=shift)

    assert len(buffer) == size
    assert buffer.address % 64 == shift
    assert buffer.content() == bytes(size)
    assert not size or address_of(buffer.view) == buffer.address
    buffer.check_guards()


@pytest.mark.parametrize("at", [-1, -64, 100, 163])
def test_a_guard_sees_what_is_written_beside_a_buffer(at):
    buffer = HostBuffer(bytes(range(100)), shift=3)
    buffer._block[buffer._start + at] = 0

    with pytest.raises(Deviation, match="in front of" if at < 0 else "behind"):
        buffer.check_guards()
