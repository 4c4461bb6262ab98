"""Plugins that are known are registered unopened, and mapped when their offer is wanted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.errors import PluginError, UnimplementedError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService

pytestmark = pytest.mark.usefixtures("home")

TRIED = Config(first_contact="new", load="lazy")
UNTRIED = Config(first_contact="never", load="lazy")


@pytest.fixture
def serve():
    """Open services, with this configuration, on these files alone."""
    opened = []

    def open_service(config, *paths):
        service = PluginService(config=config, plugin_paths=paths, bundled=False)
        opened.append(service)
        service.load()
        return service

    yield open_service
    for service in opened:
        service.close()


def is_mapped(path: Path) -> bool:
    """Tell whether a file, or a copy that is named after it, is mapped into this process."""
    return path.name.encode() in Path("/proc/self/maps").read_bytes()


# ---- What was just tried -------------------------------------------------------------------------


def test_a_plugin_that_was_tried_is_not_mapped_before_its_first_use(plugin_file, serve):
    path = plugin_file("libdeferred_one.so", scheme="deferred")
    service = serve(TRIED, path)
    (record,) = service.plugins()

    assert (record.state, record.schemes) == (State.LOADED, ("deferred",))
    assert service.schemes() == {"deferred": "deferred_one"}
    assert not is_mapped(path)
    assert service.entry("deferred_one").library is None

    filesystem = service.filesystem("deferred")
    assert (filesystem.scheme, filesystem.plugin) == ("deferred", "deferred_one")
    assert service.entry("deferred_one").library is not None
    assert service.filesystem_for("deferred://a/b") is filesystem
    assert service.plugins()[0].schemes == ("deferred",)
    assert service.plugins()[0].warnings == ()


def test_a_device_is_there_when_it_is_asked_for(device_file, serve):
    path = device_file("libdeferred_chip.so", device_type="CHIP", platform="CHIP_ONE")
    service = serve(TRIED, path)
    (record,) = service.plugins()

    assert (record.state, record.device_types) == (State.LOADED, ("CHIP",))
    assert not is_mapped(path)

    assert [device.name for device in service.devices("CHIP")] == ["CHIP:0", "CHIP:1"]
    assert service.device("CHIP:1").hardware_name == "Fixture 1000"
    assert service.entry("deferred_chip").platform is not None


def test_eager_plugins_and_named_ones_are_mapped_at_once(plugin_file, serve):
    service = serve(Config(first_contact="new", load="eager"), plugin_file("libeager.so"))
    assert service.entry("eager").library is not None

    service = serve(TRIED, plugin_file("libnamed.so"))
    assert service.entry("named").library is None
    service.load("named")
    assert service.entry("named").library is not None
    assert service.schemes() == {"fixture": "named"}


def test_a_refused_plugin_is_reported_without_being_mapped(fixture_plugin, tmp_path, serve):
    path = tmp_path / "librefused.so"
    shutil.copyfile(fixture_plugin("filesystem-size-0"), path)
    with PluginService(config=UNTRIED, plugin_paths=[path], bundled=False) as mapped:
        (as_mapped,) = mapped.load().plugins
    path = tmp_path / "librefused_too.so"
    shutil.copyfile(fixture_plugin("filesystem-size-0"), path)
    (record,) = serve(TRIED, path).plugins()

    assert (record.state, record.reasons) == (State.FAILED, as_mapped.reasons)
    assert record.reasons
    assert not is_mapped(path)


# ---- What is remembered --------------------------------------------------------------------------


@pytest.mark.parametrize("config", [TRIED, UNTRIED], ids=["tried", "mapped"])
def test_the_next_service_knows_it_and_tries_other_bytes(plugin_file, serve, config, run_forked):
    path = plugin_file("libknown.so", scheme="known")
    serve(config, path)
    told = run_forked(
        """
        import sys
        from modular_tf.first_contact import trials
        from modular_tf.service.configuration import Config
        from modular_tf.service.service import PluginService
        config = Config(first_contact=sys.argv[1], load="lazy")
        trials.try_plugins = None
        service = PluginService(config=config, plugin_paths=sys.argv[2:], bundled=False)
        (record,) = service.load().plugins
        print(record.state, *record.schemes, service.entry("known").library)
        print(service.filesystem("known").plugin)
        """,
        config.first_contact,
        path,
    )
    assert told.stdout == "loaded known None\nknown\n"
    path.unlink()
    plugin_file("libknown.so", scheme="after")

    assert serve(config, path).schemes() == {"after": "known"}


# ---- What is not as it was -----------------------------------------------------------------------


def test_a_scheme_that_is_gone_is_reported(plugin_file, serve, monkeypatch):
    service = serve(TRIED, plugin_file("libdifferent.so", scheme="promised"))
    monkeypatch.setenv("FIXTURE_SCHEME_NOW", "found")

    with pytest.raises(UnimplementedError, match="promised"):
        service.filesystem("promised")
    (record,) = service.plugins()
    assert record.schemes == ("found",)
    assert [warning.rule for warning in record.warnings] == ["LD-095"]
    assert "scheme 'promised'" in record.warnings[0].message
    assert "scheme 'found'" in record.warnings[0].message
    assert service.filesystem("found").plugin == "different"


def test_a_file_that_changes_after_it_was_recalled_is_refused(plugin_file, serve, monkeypatch):
    path = plugin_file("liba.so")
    serve(TRIED, path)
    judge = TrustJudge.judge

    def judge_what_was_changed(self, candidate, seen=None):
        path.write_bytes(path.read_bytes() + b"changed")
        return judge(self, candidate, seen)

    monkeypatch.setattr(TrustJudge, "judge", judge_what_was_changed)
    (record,) = serve(TRIED, path).plugins()

    assert (record.state, record.reasons[0].rule_id) == (State.REJECTED, "LD-082")


def remove(path, _new):
    path.unlink()


def exchange(path, new):
    new.replace(path)


@pytest.mark.parametrize(
    ("change", "said", "rule"),
    [(exchange, "LD-082", "LD-082"), (remove, "No such file", "LD-050")],
)
def test_another_file_is_not_opened_and_a_missing_one_is_reported(
    plugin_file, serve, change, said, rule
):
    path = plugin_file("libchanged.so", scheme="before")
    service = serve(TRIED, path)
    change(path, plugin_file("new/libother.so", scheme="another"))

    with pytest.raises(PluginError, match=said):
        service.filesystem("before")
    (record,) = service.plugins()
    assert (record.state, record.reason.rule) == (State.FAILED, rule)
    with pytest.raises(UnimplementedError):
        service.filesystem("before")
