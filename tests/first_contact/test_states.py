"""What becomes of the plugins of a service, and what the command line reports of them."""

import json
import shutil

import pytest

import modular_tf as mtf
from modular_tf.errors import ConfigError, PluginError
from modular_tf.first_contact.finding import Finding, Incident
from modular_tf.hookspecs import hookimpl
from modular_tf.rules import Violation
from modular_tf.service.configuration import Config, load_config, parse_config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.cli.conftest import mtf as mtf_command  # noqa: F401  (a fixture under another name)
from tests.plugins.matrix import variants

_ENDS_ITS_PROCESS = [variant for variant in variants("device").values() if variant.fault]
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


def never_tried(monkeypatch):
    monkeypatch.setattr("modular_tf.first_contact.trials.try_plugins", None)


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


@pytest.mark.parametrize("variant", _ENDS_ITS_PROCESS, ids=str)
def test_a_variant_that_ends_its_process(variant, fixture_device_plugin):
    library = fixture_device_plugin(variant.name)
    with PluginService(plugin_paths=[library], bundled=False) as service:
        (record,) = service.load().plugins

    assert record.state.value == variant.state


def test_a_quarantined_plugin_is_not_tried_again(misdeed, monkeypatch):
    library = misdeed("CRASH")
    with PluginService(plugin_paths=[library], bundled=False) as service:
        first = service.load(library)["crash_at_init"]
        never_tried(monkeypatch)

        assert service.load()["crash_at_init"] == first


def test_a_loaded_library_is_not_tried_in_a_second_service(looking):
    library, notes = looking
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load()
        notes.unlink()
        with PluginService(plugin_paths=[library], bundled=False) as second:
            assert second.load()["looks"].state is State.LOADED

    assert not notes.exists()


def test_a_plugin_that_is_disabled_runs_nowhere(misdeed, looking):
    library, notes = misdeed("LOOK_AROUND", "CONSTRUCTOR"), looking[1]
    with PluginService(
        config=Config(disable=("look*",)), plugin_paths=[library], bundled=False
    ) as service:
        (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.DISABLED, "LD-054")
    assert not notes.exists()


def test_tensorflows_way_to_load_passes_it_too(rfc_example, monkeypatch):
    with PluginService(bundled=False) as service:
        monkeypatch.setattr("modular_tf.service.default.default_service", lambda: service)

        with pytest.raises(PluginError, match="crashed with SIGSEGV") as failure:
            mtf.load_pluggable_device_library(rfc_example)

    assert failure.value.rule == "LD-060"


# ---- The policy ----------------------------------------------------------------------------------


def test_the_environment_overrides_the_file_and_without_a_setting_it_takes_place(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('first_contact = "never"\nfirst_contact_timeout_s = 5')
    environment = {"MODULAR_TF_CONFIG": str(file)}

    assert load_config(environment).first_contact == "never"
    assert load_config(environment).first_contact_timeout_s == 5
    environment["MODULAR_TF_FIRST_CONTACT"] = "always"
    assert load_config(environment).first_contact == "always"
    environment["MODULAR_TF_FIRST_CONTACT"] = "never"
    assert load_config(environment, privileged=True).first_contact == "new"
    usual = load_config({"XDG_CONFIG_HOME": str(tmp_path)})
    assert (usual.first_contact, usual.first_contact_timeout_s) == ("new", 30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('first_contact = "perhaps"', r"first_contact: expected one of .*'always', 'new', 'never'"),
        ("first_contact = true", r"first_contact: expected one of .*found True"),
        ("first_contact_timeout_s = 0", r"first_contact_timeout_s: expected a number of seconds"),
        ("first_contact_timeout_s = inf", r"first_contact_timeout_s: .* found inf"),
        ("first_contact_timeout_s = true", r"first_contact_timeout_s: .* found True"),
    ],
)
def test_a_wrong_policy_is_an_error(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_config(text, "/etc/c.toml")


def test_a_wrong_policy_of_the_environment_or_an_argument_is_an_error():
    with pytest.raises(ConfigError, match="MODULAR_TF_FIRST_CONTACT: expected one of"):
        load_config({"MODULAR_TF_FIRST_CONTACT": "yes"})
    with pytest.raises(ValueError, match="first_contact: expected one of"):
        Config(first_contact="yes")


def test_the_limit_is_the_users(misdeed, monkeypatch):
    given = []

    def noted(tasks, limits, **_):
        given.append(limits)
        return [Finding(Incident.of(Violation("LD-061", "too slow"))) for _ in tasks]

    monkeypatch.setattr("modular_tf.first_contact.trials.try_plugins", noted)
    config = Config(
        first_contact_timeout_s=7,
        first_contact_memory_mib=64,
        first_contact_accept=("LD-065",),
        first_contact="always",
    )
    with PluginService(config=config, plugin_paths=[misdeed("HANG")], bundled=False) as service:
        (record,) = service.load().plugins

    (limits,) = given
    assert (limits.seconds, limits.memory_mib, limits.accept) == (7, 64, frozenset({"LD-065"}))
    assert (record.state, record.reason.rule) == (State.QUARANTINED, "LD-061")


def test_never_runs_the_plugin_here_at_once(looking, monkeypatch):
    library, notes = looking
    never_tried(monkeypatch)
    with PluginService(
        config=Config(first_contact="never"), plugin_paths=[library], bundled=False
    ) as service:
        assert service.load()["looks"].state is State.LOADED

    assert notes.exists()


# ---- The command line ----------------------------------------------------------------------------


@pytest.fixture
def command(mtf_command, rfc_example, good):  # noqa: F811
    return lambda *words: mtf_command(
        "--plugin", rfc_example, "--plugin", good, "--no-bundled", *words
    )


def test_the_list_shows_it(command):
    listed = command("list")
    plugins = {plugin["name"]: plugin for plugin in command("--json", "list").object["plugins"]}

    assert listed.code == 0
    (line,) = (line for line in listed.lines if line.startswith("rfc_example"))
    assert all(words in line for words in ("quarantined", _CRASHED, "[LD-060]"))
    example = plugins["rfc_example"]
    assert (example["state"], example["kinds"]) == ("quarantined", ["device"])
    assert (example["reason"]["rule"], example["reason"]["stage"]) == ("LD-060", "first-contact")
    assert plugins["fixture_device_good"]["state"] == "loaded"


def test_devices_of_others_are_listed(command, mtf_command, rfc_example):  # noqa: F811
    listed = command("--json", "devices")
    none = mtf_command("--plugin", rfc_example, "--no-bundled", "devices")

    assert (listed.code, none.code) == (0, 3)
    assert [device["name"] for device in listed.object["devices"]] == ["GOOD:0", "GOOD:1"]
    for ended in (listed, none):
        assert "modular-tf: rfc_example: quarantined: " in ended.err
        assert "[LD-060]" in ended.err
    assert "modular-tf list" in none.err


@pytest.mark.parametrize("by_path", [False, True])
def test_why_reports_the_reason_and_what_to_do(by_path, command, rfc_example):
    answer = command("why", rfc_example if by_path else "rfc_example")

    assert answer.code == 0
    assert answer.lines[0].startswith("plugin rfc_example is quarantined: ")
    assert answer.lines[1].startswith("  first-contact: ")
    assert _CRASHED in answer.lines[1]
    assert answer.lines[1].endswith("[LD-060]")
    assert "tell its author" in answer.lines[2]


def test_inspect_shows_what_the_bytes_say(command):
    shown = json.loads(command("--json", "inspect", "rfc_example").out)["plugin"]

    assert shown["state"] == "quarantined"
    assert shown["tables"] == []
    assert "SE_InitPlugin" in json.dumps(shown["probe"])
