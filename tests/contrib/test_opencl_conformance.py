"""The OpenCL device on PoCL conforms, with two devices, up to random sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from modular_tf.check.job import Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.settings import CheckSettings
from tests.check.device_runs import report_on
from tests.contrib.built_plugin import built_plugin
from tests.contrib.opencl_plugin import TWO_DEVICES
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

if TYPE_CHECKING:
    from modular_tf.check.report.report import PluginReport

pytestmark = [
    pytest.mark.xdist_group("conformance of OpenCL"),  # one run of the kit serves all
    BEYOND_THE_SAMPLE,  # the device without a driver is held to the same (tests/check)
]

LACKS_NOTHING_BUT = {
    **dict.fromkeys(
        ("SE-034", "SE-035", "SE-046", "SE-047"), "the layout has no allocators of its own"
    ),
    "SE-036": "the layout is not the RFC's",
    "SE-125": "the device has no PCI bus id",
}
"""The checks that are skipped, and why."""


@pytest.fixture(scope="module")
def report() -> PluginReport:
    """The report on everything up to level 5, of the first of two devices."""
    settings = CheckSettings(level=Level.HARD)
    with pytest.MonkeyPatch.context() as patch, CheckProcesses(Limits(jobs=2)) as processes:
        for name, value in TWO_DEVICES.items():
            patch.setenv(name, value)
        return report_on(built_plugin(), processes, settings, dict(TWO_DEVICES))


def test_it_reaches_the_last_level(report: PluginReport) -> None:
    assert report.bad == []
    assert report.level_reached is Level.HARD


def test_the_one_warning_is_about_the_driver(report: PluginReport) -> None:
    """PoCL's library of processor topology sets where it looks for its own plugins."""
    said = {
        outcome.message
        for outcome in report.outcomes
        if outcome.verdict in {Verdict.WARNED, Verdict.NOTED}
    }
    assert said <= {
        "changed environment variables: HWLOC_PLUGINS_PATH, at first contact in a child process"
    }


def test_what_is_skipped_has_a_reason(report: PluginReport) -> None:
    skipped = {o.check_id: o.message for o in report.outcomes if o.verdict is Verdict.SKIPPED}
    assert skipped == LACKS_NOTHING_BUT


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_random_sequences_agree_with_the_model(report: PluginReport, reached: Pass) -> None:
    found = {o.verdict for o in report.outcomes if (o.check_id, o.reached) == ("SE-300", reached)}
    assert found == {Verdict.PASSED}
