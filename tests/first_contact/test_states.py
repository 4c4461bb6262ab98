"""What becomes of the plugins of a service."""

import os
import shutil
from pathlib import Path

import pytest

import modular_tf as mtf
from modular_tf.errors import PluginError
from modular_tf.hookspecs import hookimpl
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService

_CRASHED = "crashed with SIGSEGV (signal 11) in SE_InitPlugin"


@pytest.fixture
def good(fixture_device_plugin):
    return fixture_device_plugin("good", device_type="GOOD", platform="GOOD_CHIP")


@pytest.fixture
def looking(misdeed, tmp_path, monkeypatch):
    """A plugin that writes down what it sees when it runs, and where it does."""
    notes = tmp_path / "notes"
    monkeypatch.setenv("MISDEED_NOTES", str(notes))
    return shutil.copy(misdeed("LOOK_AROUND", "INIT"), tmp_path / "liblooks.so"), notes


def test_the_rfcs_example_is_a_state_in_the_list(rfc_example, good):
    outcomes = []

    class Listener:
        @hookimpl
        def modular_tf_outcome(self, record):
            outcomes.append((record.name, record.state))

    with PluginService(
        plugin_paths=[rfc_example, good], bundled=False, hooks=[Listener()]
    ) as service:
        report = service.load()

        example = report["rfc_example"]
        assert example.state is State.QUARANTINED
        assert example.device_types == ()
        assert (example.reason.stage, example.reason.rule) == ("first-contact", "LD-060")
        assert _CRASHED in example.reason.message
        assert example.reason.remedy
        assert [device.name for device in service.devices()] == ["GOOD:0", "GOOD:1"]
        assert service.entry("rfc_example").library is None
    assert [state for name, state in outcomes if name == "rfc_example"] == [State.QUARANTINED]


def test_each_defective_plugin_beside_a_good_one(misdeed, good, fixture_device_plugin):
    deeds = {"CRASH": "LD-060", "ABORT": "LD-060", "EXIT_0": "LD-060", "CLOSE_ALL": "LD-062"}
    breaks_rules = [fixture_device_plugin("destroy-platform-null"), misdeed("THROW", "INIT")]
    paths = [*map(misdeed, deeds), *breaks_rules, good]
    with PluginService(plugin_paths=paths, bundled=False) as service:
        report = service.load()
        records = [report[f"{deed.lower()}_at_init"] for deed in deeds]
        failed = [record for record in report.plugins if record.state is State.FAILED]

        assert {record.state for record in records} == {State.QUARANTINED}
        assert [record.reason.rule for record in records] == list(deeds.values())
        assert [record.reason.rule for record in failed] == ["SE-009", "SE-002"]
        assert service.device("GOOD:1").hardware_name == "Fixture 1000"
    maps = Path("/proc/self/maps").read_bytes()
    assert [path for path in map(misdeed, deeds) if os.fsencode(path) in maps] == []


def test_a_loaded_library_is_not_tried_in_a_second_service(looking):
    library, notes = looking
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load()
        notes.unlink()
        with PluginService(plugin_paths=[library], bundled=False) as second:
            assert second.load()["looks"].state is State.LOADED

    assert not notes.exists()


def test_tensorflows_way_to_load_passes_it_too(rfc_example, monkeypatch):
    with PluginService(bundled=False) as service:
        monkeypatch.setattr("modular_tf.service.default.default_service", lambda: service)

        with pytest.raises(PluginError, match="crashed with SIGSEGV") as failure:
            mtf.load_pluggable_device_library(rfc_example)

    assert failure.value.rule == "LD-060"


def test_never_runs_the_plugin_here_at_once(looking, monkeypatch):
    library, notes = looking
    monkeypatch.setattr("modular_tf.first_contact.trials.try_plugins", None)
    with PluginService(
        config=Config(first_contact="never"), plugin_paths=[library], bundled=False
    ) as service:
        assert service.load()["looks"].state is State.LOADED

    assert notes.exists()
