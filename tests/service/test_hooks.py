"""What installed packages and the application do by hooks, together, and what broken ones cannot.

Hook functions of several packages work together as pluggy promises, and one that fails does so
alone.
"""

from __future__ import annotations

import re
import sys

import pytest

from modular_tf.hookspecs import hookimpl
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from tests.discovery.site_folder import install
from tests.filesystem.memory_store import MemoryStore
from tests.service.test_devices import Factory

VETO, FILESYSTEMS = "modular_tf_veto", "modular_tf_filesystems"


def hooks(hook, function, name="Hooks", **options):
    """Return an object of a class of some name, with one hook function."""
    return type(name, (), {hook: staticmethod(hookimpl(**options)(function))})()


def veto(answer, **options):
    """Return an object that vetoes every plugin."""
    return hooks(VETO, lambda: answer, **options)


def stores(*schemes):
    """Return an object that brings filesystems."""
    return hooks(FILESYSTEMS, lambda: {scheme: MemoryStore() for scheme in schemes})


def fail():
    raise RuntimeError("broken hook")


def failing(hook, **options):
    """Return an object one of whose functions raises."""

    def fail_here():  # what pluggy marks is the function itself
        fail()

    return hooks(hook, fail_here, "Failing", **options)


# ---- What they can do ----


@pytest.mark.parametrize("as_answer", [lambda p: [str(p)], lambda p: (p,), str, lambda p: p])
def test_paths_are_searched_too(as_answer, plugin_file, make_service):
    seen, config = [], Config(disable=("x",))
    plugin = plugin_file("hooked/libhooked.so")

    def paths(config):
        seen.append(config)
        return as_answer(plugin)

    given = [hooks("modular_tf_plugin_paths", paths)]
    service = make_service(hooks=given, config=config, fsspec_fallback=None)

    assert service.load()["hooked"].state is State.LOADED
    assert service.report()["hooked"].source == "config"
    assert seen[0] is config


def test_a_veto_is_a_reason_and_nothing_of_the_plugin_runs(make_service, fixture_plugin):
    asked = []

    def forbid(candidate, probe):
        asked.append((candidate.name, probe.loadable))
        return "unsigned"

    crashing = fixture_plugin("init-plugin-crashes")
    service = make_service(crashing, hooks=[hooks(VETO, forbid)])
    (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.DISABLED, "LD-055")
    assert (record.reason.stage, record.reason.message) == ("policy", "unsigned")
    assert service.entry(record.name).library is None
    assert asked == [(record.name, True)]


@pytest.mark.parametrize("pins", [{}, {"ram": "MemoryStore"}])
def test_a_hook_gets_a_scheme_of_a_bundled_plugin_only_by_a_pin(pins, make_service):
    service = make_service(hooks=[stores("ram")], bundled=True, config=Config(scheme_pins=pins))
    service.load()

    assert service.schemes()["ram"] == pins.get("ram", "ram_filesystem")
    told = [str(note) for note in service.report().hook_failures]
    assert any("ram_filesystem" in note for note in told) is (not pins)


def test_filesystems_and_devices_are_registered_once(make_service):
    given = [stores("mem"), hooks("modular_tf_device_factories", lambda: [Factory()])]
    service = make_service(hooks=given)
    service.load()
    service.load()

    assert service.schemes() == {"mem": "MemoryStore"}
    assert len(service.devices("NPU")) == 2
    assert [record.name for record in service.plugins()] == ["MemoryStore", "Factory"]
    assert service.report().hook_failures == ()


def test_every_outcome_is_reported_once_also_where_a_hook_fails(
    plugin_file, make_service, tmp_path
):
    plugin_file("liba.so")
    plugin_file("libb.so", "init-fails", scheme="bb")
    outcome, told = "modular_tf_outcome", []
    given = [
        failing(outcome),
        hooks(outcome, lambda record: told.append((record.name, record.state.value))),
        failing(outcome, trylast=True),
    ]
    service = make_service(tmp_path, hooks=given)
    service.load()
    service.load()

    assert told == [("a", "loaded"), ("b", "failed")]
    assert [
        failure.message.partition(" failed")[0] for failure in service.report().hook_failures
    ] == [f"{outcome} of Failing", f"{outcome} of Failing#2"]


HOOKED = b"""
from modular_tf.hookspecs import hookimpl
from tests.filesystem.memory_store import MemoryStore

class Brought:
    @hookimpl
    def modular_tf_filesystems(self):
        return {"brought": MemoryStore()}

brought = Brought()
"""


def test_an_installed_package_brings_hooks(site, make_service, monkeypatch):
    monkeypatch.delitem(sys.modules, "hooked_package", raising=False)
    entry_points = "[modular_tf.hooks]\nbroken = no_such_module:x\ngood = hooked_package:brought"
    install(site, "hooked", files={"hooked_package.py": HOOKED}, entry_points=entry_points)
    service = make_service()
    report = service.load()

    assert service.schemes() == {"brought": "MemoryStore"}
    (failure,) = report.hook_failures
    assert "hooked 1.0: broken" in failure.message
    assert "no_such_module" in failure.message


def test_the_report_lists_the_functions_in_the_order_of_their_calls(make_service):
    def wrap():
        return (yield)

    given = [
        veto("late", trylast=True),
        veto("plain"),
        veto("early", tryfirst=True),
        hooks(VETO, wrap, "Wrapping", wrapper=True),
        hooks("modular_tf_outcome", lambda record: None, "Listening"),
    ]
    service = make_service(hooks=given)
    service.discover()

    assert [entry.as_dict() for entry in service.report().hooks] == [
        {"hook": hook, "implementation": name, "order": order, "wrapper": name == "Wrapping"}
        for hook, name, order in [
            (VETO, "Wrapping", None),
            (VETO, "Hooks#3", "tryfirst"),
            (VETO, "Hooks#2", None),
            (VETO, "Hooks", "trylast"),
            ("modular_tf_outcome", "Listening", None),
        ]
    ]


# ---- Together, and where one is broken ----


def _fails_at_once():
    raise RuntimeError("broken hook")
    yield


def _fails_at_the_end():
    yield
    raise RuntimeError("broken hook")


def _never_yields():
    return
    yield


def _yields_twice():
    try:
        yield
        yield
    finally:
        raise RuntimeError("broken hook")


def _returns_nonsense():
    yield
    return [5]


def _empties():
    answers = yield
    answers[0].clear()
    answers.clear()
    raise RuntimeError("broken hook")


def _overrules():
    yield


def _keeps_both():
    answers = yield
    return [{"both": answers[0]["both"]}]


def _has_no_text():
    class SilentError(Exception):
        def __repr__(self):
            raise RuntimeError("no text")

        __str__ = __repr__

    raise SilentError


def _former_kind(candidate):
    outcome = yield
    outcome.force_result(f"{candidate.name}: {outcome.get_result()}")


def _wrapper(hook, function):
    return hooks(hook, function, "Broken", wrapper=True)


FAILING = failing(VETO)
BROKEN_WRAPPERS = [_fails_at_once, _fails_at_the_end, _never_yields, _yields_twice]
VETOES = {
    "the first that is given decides": ([veto(None), veto("first"), veto("second")], "first"),
    "tryfirst": ([veto("plain"), veto("expected", tryfirst=True)], "expected"),
    "trylast": ([veto("late", trylast=True), veto("expected")], "expected"),
    "a wrapper overrules": ([veto("no"), _wrapper(VETO, _overrules)], "loaded"),
    "an answer before a failure": ([veto("no"), FAILING], "no"),
    "a failure before an answer": ([FAILING, veto("no")], f"{VETO} of Failing failed: Runtime"),
    "an exception without a text": (
        [hooks(VETO, _has_no_text)],
        f"{VETO} of Hooks failed: SilentError",
    ),
    "a broken wrapper": ([_wrapper(VETO, _fails_at_the_end)], f"{VETO} of Broken failed: "),
}


@pytest.mark.parametrize("case", VETOES)
def test_what_decides_whether_a_plugin_is_refused(case, plugin_file, make_service):
    given, said = VETOES[case]
    record = make_service(plugin_file("liba.so"), hooks=given).load()["a"]

    assert (record.reason.message if record.reason else "loaded").startswith(said)


FORMER_KIND = hooks(VETO, _former_kind, "Former", hookwrapper=True)
MISSPELT = hooks("modular_tf_filesystemz", lambda: None)
DEMANDING = hooks(FILESYSTEMS, lambda what_is_this: {})
GOOD = stores("good")
BROUGHT = {
    "the first has the scheme": (
        [stores("xx", "yy"), stores("xx")],
        ["xx", "yy"],
        "registering.*FS-018",
    ),
    "a pin": ([stores("xx", "pinned")], ["xx"], "registering.*FS-018"),
    "an object given twice": ([GOOD, GOOD], ["good"], None),
    "a wrapper replaces": (
        [stores("both", "xx"), stores("both"), _wrapper(FILESYSTEMS, _keeps_both)],
        ["both"],
        None,
    ),
    "a wrapper of the former kind": ([FORMER_KIND, GOOD], ["good"], "Former .*use wrapper=True"),
    "no generator": (
        [_wrapper(VETO, lambda: None), GOOD],
        ["good"],
        "Broken .*not a generator function",
    ),
    "an unknown hook": ([MISSPELT, GOOD], ["good"], "modular_tf_filesystemz"),
    "an unknown argument": ([DEMANDING, GOOD], ["good"], "what_is_this"),
    **{
        broken.__name__: (
            [_wrapper(FILESYSTEMS, broken), GOOD],
            ["good"],
            f"{FILESYSTEMS} of Broken failed: ",
        )
        for broken in (*BROKEN_WRAPPERS, _returns_nonsense, _empties)
    },
}


@pytest.mark.parametrize("case", BROUGHT)
def test_what_hooks_bring_together(case, make_service):
    given, schemes, said = BROUGHT[case]
    service = make_service(hooks=given, config=Config(scheme_pins={"pinned": "x"}))
    failures = service.load().hook_failures

    assert list(service.schemes()) == schemes
    assert len(failures) == (said is not None)
    assert all(re.search(said, f"{each.message} {each.rule}") for each in failures)
    assert all(failure.stage == "hooks" for failure in failures)


def test_a_wrapper_is_closed_where_an_interrupt_ends_the_call(plugin_file, make_service):
    closed = []

    def wrap(candidate):
        try:
            return (yield)
        finally:
            closed.append(True)
            raise RuntimeError("this must not replace the interrupt")

    def interrupt():
        raise KeyboardInterrupt

    given = [hooks(VETO, interrupt), hooks(VETO, wrap, wrapper=True)]
    with pytest.raises(KeyboardInterrupt):
        make_service(plugin_file("liba.so"), hooks=given).load()

    assert closed == [True]


def _generator_that_fails():
    yield "/nowhere"
    raise RuntimeError("broken generator")


@pytest.mark.parametrize(
    ("paths", "filesystems", "factories"),
    [
        (fail, fail, fail),
        (lambda: 5, lambda: 5, lambda: 5),
        (lambda: [5, None], lambda: {5: None, "mem": object()}, lambda: [None, object()]),
        (_generator_that_fails, lambda: [1], _generator_that_fails),
    ],
    ids=["raise", "no-lists", "nonsense-in-lists", "generators"],
)
def test_broken_hooks_stop_nothing_and_are_reported(
    paths, filesystems, factories, plugin_file, make_service
):
    given = [
        hooks("modular_tf_plugin_paths", paths),
        hooks(FILESYSTEMS, filesystems),
        hooks("modular_tf_device_factories", factories),
        stores("good"),
        hooks("modular_tf_device_factories", lambda: [Factory()]),
    ]
    service = make_service(plugin_file("liba.so"), hooks=given)
    report = service.load()

    assert service.schemes() == {"fixture": "a", "good": "MemoryStore"}
    assert len(service.devices("NPU")) == 2
    assert len(report.hook_failures) >= 3
    assert all(failure.stage == "hooks" and failure.message for failure in report.hook_failures)
    assert any("in a hook" in line for line in service.why("absent").lines)
