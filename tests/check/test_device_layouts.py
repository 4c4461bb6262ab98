"""Device plugins of every layout are held to what their layout has.

The plugin of all layouts runs its work at once, has NULL for streams and events, and touches no
status: all of that is legal, and some of it is worth a warning.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import candidates_of, plan_of
from modular_tf.check.report.report import PluginReport
from modular_tf.check.settings import CheckSettings
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober
from modular_tf.loading.device_dialect import HOSTED
from tests.device.dialects.building import Build
from tests.fixtures.matrices import sampled

pytestmark = pytest.mark.xdist_group("conformance of layouts")  # one run of the kit serves all

RFC = Dialect.DEVICE_RFC
_QUICKLY = {"large_bytes": 1 << 16, "many": 20, "repeat": 40, "pressure_mib": 32}
TELLING = {Verdict.WARNED: "warned", Verdict.NOTED: "noted"}

# What is reported of this plugin in any layout, and why.
ALWAYS = {
    "SE-107": "noted",  # SE_InitPlugin touches no status
    "SE-169": "noted",  # it knows no figures
    "SE-283": "warned",  # callbacks run in the thread of the caller
    "SE-284": "warned",  # and what they fail with is lost
    "SE-288": "warned",  # no operation touches its status
}
# The structs of these are larger than those that TensorFlow 2.21 lends.
LARGER = {"SE-101": "warned"}
# The RFC's allocators report figures, which stand still.
STILL = dict.fromkeys(("SE-172", "SE-173", "SE-175"), "warned")
RFC_ALLOCATORS = (
    {name: reported for name, reported in ALWAYS.items() if name != "SE-169"} | LARGER | STILL
)


def named(build):
    return " ".join([str(build), *map(str, build.macros.values())])


@pytest.fixture
def report_on(processes):
    """Check a library as `modular-tf check --through-host` does, in processes that others share."""

    def run(build, **settings):
        wanted = CheckSettings(through_host=True, options=_QUICKLY, **settings)
        (candidate,), _ = candidates_of([str(build.compile())])
        with Prober(host_exports()) as prober:
            plan = plan_of(prober.probe(candidate), wanted, seed=7)
        # Each process has devices of its own: none needs them to itself.
        results = processes.run([replace(job, alone=None) for job in plan.jobs])
        assert [result.fault for result in results if result.fault is not None] == []
        outcomes = tuple(outcome for result in results for outcome in result.outcomes)
        about = plan.path, plan.name, plan.kinds, wanted.profile.name, wanted.level, plan.seed
        return PluginReport(*about, outcomes=outcomes)

    return run


def telling(report):
    return {o.check_id: TELLING[o.verdict] for o in report.outcomes if o.verdict in TELLING}


SAMPLE = [(Build(RFC, macros={"ALLOCATOR": "PLAIN", "UNIFIED": 1}), RFC_ALLOCATORS)]
# The other layouts, and the same one once more in other forms.
FURTHER = [
    (Build(HOSTED), ALWAYS),
    (Build(Dialect.DEVICE_V205), ALWAYS),
    (Build(Dialect.DEVICE_V207), ALWAYS),
    (Build(RFC), ALWAYS | LARGER),
    (Build(RFC, macros={"ALLOCATOR": "CUSTOM"}), RFC_ALLOCATORS),
]


@pytest.mark.parametrize("case", sampled([*SAMPLE, *FURTHER], SAMPLE), ids=lambda it: named(it[0]))
def test_every_layout_is_robust_and_what_is_reported_has_a_reason(case, report_on):
    build, reported = case
    report = report_on(build, level=Level.ROBUST)

    assert report.bad == []
    assert report.level_reached is Level.ROBUST
    assert telling(report) == reported
    # What a layout lacks is skipped raw and tried through the host.
    executor = layout("SP_StreamExecutor", build.dialect)
    has_fills = executor.has("memset", executor.size)
    assert {o.reached: o.verdict for o in report.outcomes if o.check_id == "SE-223"} == {
        Pass.RAW: Verdict.PASSED if has_fills else Verdict.SKIPPED,
        Pass.HOST: Verdict.PASSED,
    }


def test_without_devices_nothing_is_held_against_a_plugin(report_on):
    report = report_on(Build(HOSTED, macros={"DEVICES_SAID": 0}), level=Level.ROBUST)

    assert report.bad == []
    assert telling(report) == {"SE-107": "noted"}
    of_devices = {o.verdict for o in report.outcomes if o.reached is not Pass.LIBRARY}
    assert of_devices == {Verdict.SKIPPED}
