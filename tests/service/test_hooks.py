"""What installed packages and the application do by hooks, and what broken hooks cannot do."""

from __future__ import annotations

import sys

import pytest

from modular_tf.hookspecs import hookimpl
from modular_tf.service import hooks as service_hooks
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from tests.filesystem.memory_store import MemoryStore
from tests.service.test_devices import Factory


class Hooks:
    """All hooks, with answers that a test chooses."""

    def __init__(self, paths=None, veto=None, filesystems=None, factories=None):
        self.answers = paths, veto, filesystems, factories
        self.vetoed = []
        self.outcomes = []

    @hookimpl
    def modular_tf_plugin_paths(self, config):
        return _call(self.answers[0])

    @hookimpl
    def modular_tf_veto(self, candidate, probe):
        self.vetoed.append((candidate.name, probe.loadable))
        return _call(self.answers[1])

    @hookimpl
    def modular_tf_filesystems(self):
        return _call(self.answers[2])

    @hookimpl
    def modular_tf_device_factories(self):
        return _call(self.answers[3])

    @hookimpl
    def modular_tf_outcome(self, record):
        self.outcomes.append((record.name, record.state.value))


def _call(answer):
    return answer() if callable(answer) else answer


def _fail(*_):
    raise RuntimeError("broken hook")


def _generator_that_fails():
    yield "/nowhere"
    raise RuntimeError("broken generator")


# ---- What they can do ----


@pytest.mark.parametrize("as_answer", [lambda p: [str(p)], lambda p: (p,), str, lambda p: p])
def test_paths_are_searched_too(as_answer, plugin_file, make_service):
    plugin = plugin_file("hooked/libhooked.so")
    service = make_service(hooks=[Hooks(paths=as_answer(plugin))])

    assert service.load()["hooked"].state is State.LOADED
    assert service.report()["hooked"].source == "config"


def test_a_veto_is_a_reason_and_nothing_of_the_plugin_runs(make_service, fixture_plugin):
    hooks = Hooks(veto="unsigned")
    service = make_service(fixture_plugin("init-plugin-crashes"), hooks=[hooks])
    (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.DISABLED, "LD-055")
    assert (record.reason.stage, record.reason.message) == ("policy", "unsigned")
    assert service.entry(record.name).library is None
    assert hooks.vetoed == [(record.name, True)]


@pytest.mark.parametrize("pins", [{}, {"ram": "MemoryStore"}])
def test_a_hook_gets_a_scheme_of_a_bundled_plugin_only_by_a_pin(pins, make_service):
    hooks = [Hooks(filesystems={"ram": MemoryStore()})]
    service = make_service(hooks=hooks, bundled=True, config=Config(scheme_pins=pins))
    service.load()

    assert service.schemes()["ram"] == pins.get("ram", "ram_filesystem")
    told = [str(note) for note in service.report().hook_failures]
    assert any("ram_filesystem" in note for note in told) is (not pins)


def test_the_caller_may_register_an_object_for_a_scheme_of_a_bundled_plugin(make_service):
    service = make_service(bundled=True)
    service.register_filesystem("ram", MemoryStore())
    service.load()

    assert service.schemes()["ram"] == "MemoryStore"


def test_filesystems_and_devices_are_registered_once(make_service):
    service = make_service(hooks=[Hooks(filesystems={"mem": MemoryStore()}, factories=[Factory()])])
    service.load()
    service.load()

    assert service.schemes() == {"mem": "MemoryStore"}
    assert len(service.devices("NPU")) == 2
    assert [record.name for record in service.plugins()] == ["MemoryStore", "Factory"]
    assert service.report().hook_failures == ()


def test_every_outcome_is_told_once(plugin_file, make_service, tmp_path):
    plugin_file("liba.so")
    plugin_file("libb.so", "init-fails", scheme="bb")
    hooks = Hooks()
    service = make_service(tmp_path, hooks=[hooks])
    service.load()
    service.load()

    assert hooks.outcomes == [("a", "loaded"), ("b", "failed")]


def test_the_configuration_is_shown_to_hooks(make_service):
    class Asking:
        @hookimpl
        def modular_tf_plugin_paths(self, config):
            self.seen = config
            return []

    config, hooks = Config(disable=("x",)), Asking()
    make_service(config=config, hooks=[hooks], fsspec_fallback=None).discover()

    assert hooks.seen is config


def test_an_installed_package_brings_hooks(site, make_service, monkeypatch):
    monkeypatch.delitem(sys.modules, "hooked_package", raising=False)
    (site / "hooked_package.py").write_text(
        "from modular_tf.hookspecs import hookimpl\n"
        "class Brought:\n"
        "    @hookimpl\n"
        "    def modular_tf_filesystems(self):\n"
        "        from tests.filesystem.memory_store import MemoryStore\n"
        "        return {'brought': MemoryStore()}\n"
        "brought = Brought()\n"
    )
    metadata = site / "hooked_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hooked-package\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[modular_tf.hooks]\nbroken = no_such_module:x\ngood = hooked_package:brought\n"
    )
    service = make_service()
    report = service.load()

    assert service.schemes() == {"brought": "MemoryStore"}
    (failure,) = report.hook_failures
    assert "hooked-package 1.0: broken" in failure.message
    assert "no_such_module" in failure.message


# ---- What broken ones cannot do ----


@pytest.mark.parametrize(
    "broken",
    [
        Hooks(paths=_fail, filesystems=_fail, factories=_fail),
        Hooks(paths=5, filesystems=5, factories=5),
        Hooks(paths=[5, None], filesystems={5: None, "mem": object()}, factories=[None, object()]),
        Hooks(paths=_generator_that_fails, filesystems=[1], factories=_generator_that_fails),
    ],
    ids=["raise", "no-lists", "nonsense-in-lists", "generators"],
)
def test_broken_hooks_stop_nothing_and_are_told(broken, plugin_file, make_service):
    good = Hooks(filesystems={"good": MemoryStore()}, factories=[Factory()])
    service = make_service(plugin_file("liba.so"), hooks=[broken, good])
    report = service.load()

    assert service.schemes() == {"fixture": "a", "good": "MemoryStore"}
    assert len(service.devices("NPU")) == 2
    assert len(report.hook_failures) >= 3
    assert all(failure.stage == "hooks" and failure.message for failure in report.hook_failures)
    assert any("in a hook" in line for line in service.why("absent").lines)


@pytest.mark.parametrize("changes", [False, True], ids=["same-text", "other-text-each-time"])
def test_what_fails_again_and_again_is_kept_within_bounds(
    plugin_file, make_service, monkeypatch, changes
):
    monkeypatch.setattr(service_hooks, "_MOST_FAILURES", 5)
    calls = []

    def fail():
        calls.append(None)
        raise RuntimeError(f"failed {len(calls) if changes else ''}")

    service = make_service(plugin_file("liba.so"), hooks=[Hooks(paths=fail)])
    service.load()
    while len(calls) < 10:
        service.refresh()

    failures = service.report().hook_failures
    assert "failed" in failures[0].message
    assert len(failures) == (5 if changes else 1)


def test_a_hook_of_no_known_name_or_shape_is_told_and_left_out(make_service):
    class Misspelt:
        @hookimpl
        def modular_tf_filesystemz(self):
            return {}

    class Demanding:
        @hookimpl
        def modular_tf_filesystems(self, what_is_this):
            return {}

    same = Hooks(filesystems={"mem": MemoryStore()})
    service = make_service(hooks=[Misspelt(), Demanding(), same, same])
    report = service.load()

    assert service.schemes() == {"mem": "MemoryStore"}
    assert "modular_tf_filesystemz" in report.hook_failures[0].message
    assert "what_is_this" in report.hook_failures[1].message
    assert len(report.hook_failures) == 2


def test_a_hooked_filesystem_gives_way_to_pins_and_to_earlier_ones(make_service):
    service = make_service(
        config=Config(scheme_pins={"pinned": "x"}),
        hooks=[
            Hooks(filesystems={"mem": MemoryStore(), "pinned": MemoryStore()}),
            Hooks(filesystems={"mem": MemoryStore()}),
        ],
    )
    report = service.load()

    assert service.schemes() == {"mem": "MemoryStore"}
    assert [failure.rule for failure in report.hook_failures] == ["FS-018", "FS-018"]
    assert all(failure.remedy for failure in report.hook_failures)
