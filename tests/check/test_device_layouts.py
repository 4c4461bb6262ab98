"""Device plugins of every layout are held to what their layout has.

The plugin of all layouts runs its work at once, has NULL for streams and events, and touches no
status: all of that is legal, and some of it is worth a warning.
"""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.check.job import Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.settings import CheckSettings
from modular_tf.loading.device_dialect import HOSTED
from tests.check.device_runs import report_on
from tests.device.dialects.building import FORMS, LAYOUTS, Build
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

pytestmark = pytest.mark.xdist_group("conformance of layouts")  # one run of the kit serves all

RFC, V205, V207 = (
    Dialect.DEVICE_RFC,
    Dialect.DEVICE_V205,
    Dialect.DEVICE_V207,
)
NEWEST = HOSTED
TELLING = {Verdict.WARNED: "warned", Verdict.NOTED: "noted"}

# What is said of this plugin in any layout, and why.
ALWAYS = {
    "SE-107": "noted",  # SE_InitPlugin touches no status
    "SE-169": "noted",  # it knows no figures
    "SE-283": "warned",  # callbacks run in the thread of the caller
    "SE-284": "warned",  # and what they fail with is lost
    "SE-288": "warned",  # no operation touches its status
}
# The structs of these are larger than those that TensorFlow 2.21 lends.
LARGER = {"SE-101": "warned"}
# The RFC's allocators tell figures, which stand still.
STILL = {"SE-172": "warned", "SE-173": "warned", "SE-175": "warned"}
RFC_ALLOCATORS = {name: said for name, said in ALWAYS.items() if name != "SE-169"} | LARGER | STILL

ALL_BUILDS = [
    Build(dialect, sizes, form) for dialect in LAYOUTS for sizes in (True, False) for form in FORMS
]


def named(build):
    return " ".join([str(build), *map(str, build.macros.values())])


@pytest.fixture(scope="module")
def processes():
    with CheckProcesses(Limits(jobs=2)) as started:
        yield started


def telling(report):
    """Return the checks that say something, and how they say it."""
    return {o.check_id: TELLING[o.verdict] for o in report.outcomes if o.verdict in TELLING}


def said_of_registration(build):
    """Return what is said of how a build registers."""
    said = {"SE-107": "noted"}
    if build.form == "SAVED":  # it loses the parameters' own sizes, and pointers
        said |= dict.fromkeys(("SE-005", "SE-006", "SE-007"), "warned")
    if build.form == "OWN":
        said["SE-007"] = "warned"
    elif build.dialect is RFC:
        said |= LARGER
    if not build.sizes and build.form in {"ASSIGNS", "OWN"}:  # a size of 0 is what a host sees
        said |= dict.fromkeys(("SE-011", "SE-017", "SE-024", "SE-043"), "warned")
        if build.dialect is not RFC:
            said["SE-022"] = "warned"
    return said


@pytest.mark.parametrize("build", ALL_BUILDS, ids=named)
def test_every_form_registers(build, processes):
    report = report_on(build.compile(), processes, CheckSettings(level=Level.REGISTERS))

    assert report.level_reached is Level.REGISTERS
    assert telling(report) == said_of_registration(build)


OWN_STRUCTS = Build(NEWEST, sizes=False, form="OWN")
WHOLE = [
    (Build(RFC, macros={"ALLOCATOR": "PLAIN", "UNIFIED": 1}), RFC_ALLOCATORS),
    (Build(NEWEST), ALWAYS),
]
# The layouts between, and the same ones once more in other forms.
FURTHER = [
    (Build(V205), ALWAYS),
    (Build(V207), ALWAYS),
    (Build(RFC), ALWAYS | LARGER),
    (Build(RFC, macros={"ALLOCATOR": "CUSTOM"}), RFC_ALLOCATORS),
    (OWN_STRUCTS, ALWAYS | said_of_registration(OWN_STRUCTS)),
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            each,
            id=named(each[0]),
            marks=[
                pytest.mark.xdist_group(named(each[0])),
                *([BEYOND_THE_SAMPLE] if each in FURTHER else []),
            ],
        )
        for each in (*WHOLE, *FURTHER)
    ],
)
def whole(request, processes):
    """A build, what is said of it, and the report of a whole run."""
    build, said = request.param
    report = report_on(build.compile(), processes, CheckSettings(level=Level.ROBUST))
    return build, said, report


def test_every_layout_is_robust(whole):
    _, _, report = whole

    assert report.bad == []
    assert report.level_reached is Level.ROBUST


def test_what_is_said_has_a_reason(whole):
    _, said, report = whole

    assert telling(report) == said


def test_what_a_layout_lacks_is_skipped_raw_and_tried_through_the_host(whole):
    build, _, report = whole
    executor = layout("SP_StreamExecutor", build.dialect)
    has_fills = executor.has("memset", executor.size)
    found = {o.reached: o.verdict for o in report.outcomes if o.check_id == "SE-223"}

    assert found == {
        Pass.RAW: Verdict.PASSED if has_fills else Verdict.SKIPPED,
        Pass.HOST: Verdict.PASSED,
    }


def test_without_devices_nothing_is_held_against_a_plugin(processes):
    library = Build(NEWEST, macros={"DEVICES_SAID": 0}).compile()
    report = report_on(library, processes, CheckSettings(level=Level.ROBUST))

    assert report.bad == []
    assert telling(report) == {"SE-107": "noted"}
    assert {o.verdict for o in report.outcomes if o.reached is not Pass.LIBRARY} == {
        Verdict.SKIPPED
    }


def test_without_timers_the_hosts_are_tried(processes):
    library = Build(NEWEST, macros={"TIMERS": 0}).compile()
    report = report_on(library, processes, CheckSettings(only=("SE-273", "SE-274")))

    assert {(o.reached, o.verdict) for o in report.outcomes} == {
        (Pass.RAW, Verdict.SKIPPED),
        (Pass.HOST, Verdict.PASSED),
    }


def test_random_sequences_agree_with_the_model(processes):
    settings = CheckSettings(level=Level.HARD, only=("sequences",))
    report = report_on(Build(RFC).compile(), processes, settings)

    assert {(o.check_id, o.reached, o.verdict) for o in report.outcomes} == {
        ("SE-300", Pass.RAW, Verdict.PASSED),
        ("SE-300", Pass.HOST, Verdict.PASSED),
    }
