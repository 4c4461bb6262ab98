"""`devices --smoke`: what works on good devices, and what does not on faulty ones."""

import re
import threading

import pytest

from modular_tf.cli import devices
from modular_tf.cli.output import Printer
from modular_tf.service.service import PluginService
from tests.first_contact.conftest import build_misdeed
from tests.fixtures.matrices import sampled

CHECKS = ["allocate", "copy", "copy_within", "fill", "event", "timer", "callback"]
COPIES = {"copy", "copy_within"}
FAULTS = {
    "allocate-null": (set(CHECKS), "gave no memory"),
    "create-stream-fails": (set(CHECKS) - {"allocate"}, "no stream is left"),
    "event-error": ({"event", "timer"}, "ERROR"),
    "callback-refused": ({"callback"}, "host_callback returned 0"),
    "create-device-fails": (set(CHECKS), "the device is in use"),
    "copies-crash": ({*COPIES, "fill"}, "the process crashed with SIGSEGV"),
}
"""What a variant of the fixture plugin cannot do, and what is in each message about it."""


@pytest.fixture
def smoke(mtf, fixture_device_plugin):
    """Try the devices of a fixture plugin; return how the command ended."""

    def run(variant, *words):
        library = fixture_device_plugin(variant)
        return mtf("--plugin", library, "--no-bundled", "devices", "--smoke", *words)

    return run


@pytest.mark.parametrize("variant", sampled(["good", "dialect-rfc"], ["dialect-rfc"]))
def test_everything_works_on_a_good_device(smoke, variant):
    ended = smoke(variant, "FIXTURE:1", "--json")
    assert (ended.code, ended.err) == (0, "")
    (device,) = ended.object["devices"]
    assert device["name"] == "FIXTURE:1"
    assert device["works"] is True
    assert [check["check"] for check in device["checks"]] == CHECKS
    assert all(check["works"] and check["elapsed_ms"] > 0 for check in device["checks"])


def test_each_device_has_a_process_of_its_own(smoke):
    """Both devices of the plugin share one memory, and the arena of each takes it all."""
    ended = smoke("bfc-allocator", "FIXTURE", "--json")
    found = {device["name"]: device["works"] for device in ended.object["devices"]}
    assert (ended.code, ended.err, found) == (0, "", {"FIXTURE:0": True, "FIXTURE:1": True})


@pytest.mark.parametrize("variant", sampled(FAULTS, ["event-error", "copies-crash"]))
def test_a_fault_is_reported_and_the_rest_is_tried_nevertheless(smoke, variant):
    faulty, message = FAULTS[variant]
    ended = smoke(variant, "FIXTURE:0", "--json")
    assert ended.code == 1
    assert "1 of 1 devices failed: FIXTURE:0" in ended.err
    (device,) = ended.object["devices"]
    assert device["works"] is False
    checks = {check["check"]: check for check in device["checks"]}
    assert list(checks) == CHECKS
    messages = {name: each["message"] for name, each in checks.items() if not each["works"]}
    assert set(messages) == faulty
    assert all(message in each for each in messages.values())
    if variant == "copies-crash":
        assert device["hardware_name"]
        assert all("libfixture_device_copies_crash.so" in each for each in messages.values())


def test_one_bad_device_leaves_the_other_alone(smoke, mtf, fixture_device_plugin):
    ended = smoke("create-second-device-fails", "--json")
    assert [device["works"] for device in ended.object["devices"]] == [True, False]
    assert ended.code == 1
    assert "1 of 2 devices failed: FIXTURE:1" in ended.err

    library = fixture_device_plugin("create-second-device-fails")
    listed = mtf("--plugin", library, "--no-bundled", "devices")
    assert listed.code == 0
    assert listed.err.startswith("modular-tf: FIXTURE:1: create_device: the device is in use")


def test_an_emulated_timer_works_and_says_so(smoke):
    ended = smoke("no-timers", "FIXTURE:0", "--json")
    assert ended.code == 0
    (timer,) = (c for c in ended.object["devices"][0]["checks"] if c["check"] == "timer")
    assert timer["works"]
    assert "host's clock" in timer["message"]


def test_a_line_for_each_check(smoke):
    rows = [line.split("\t") for line in smoke("callback-refused").lines]
    assert [row[:3] for row in rows] == [
        [name, check, "failed" if check == "callback" else "works"]
        for name in ("FIXTURE:0", "FIXTURE:1")
        for check in CHECKS
    ]
    assert "host_callback returned 0" in rows[6][4]


def test_what_a_plugin_prints_is_no_result(mtf_process):
    plugin = build_misdeed("NOISE")
    ended = mtf_process("--plugin", plugin, "--no-bundled", "devices", "--smoke", "DIALECT:0")
    assert [line.split("\t")[0] for line in ended.lines] == ["DIALECT:0"] * len(CHECKS)
    assert '{"lost": "nothing"}' in ended.err


def test_a_call_that_never_returns_is_given_up(smoke):
    ended = smoke("copies-hang", "FIXTURE:0", "--json", "--timeout", "1")
    assert ended.code == 1
    checks = {check["check"]: check for check in ended.object["devices"][0]["checks"]}
    assert list(checks) == CHECKS
    assert checks["allocate"]["works"]
    assert checks["copy"]["message"].startswith("the plugin did not come back within 1 s, at ")
    for name in CHECKS[2:]:
        assert checks[name]["works"] is None
        assert "not come back" in checks[name]["message"]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_device_that_does_not_answer_is_listed(monkeypatch, capsys, is_terminal):
    class Silent:
        name, device_type, platform = "NPU:0", "NPU", "SIMULATED"
        ordinal, priority, plugin = 0, 220, "npu"

        def __init__(self):
            self.enough = threading.Event()

        def to_dict(self):
            self.enough.wait()
            return {}

    monkeypatch.setattr(devices, "_SILENCE_S", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    silent, details = Silent(), devices.Details(0.05)
    found = details.of(silent)
    silent.enough.set()
    assert (found["name"], found["vendor"], found["memory_total"]) == ("NPU:0", None, None)
    assert found["error"] == "NPU:0: no details within 0.05 s"
    warning = "modular-tf: NPU:0: no details yet; the wait ends after 0.05 s\n"
    assert capsys.readouterr().err == (warning if is_terminal else "")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("/device:FIXTURE:1", 0, ""),
        ("/physical_device:FIXTURE:1", 0, ""),
        ("FIX-TURE:1", 1, "'FIX-TURE:1' is no device name"),
        # Another case is another type.
        ("fixture:1", 3, "no device 'fixture:1'; there are: FIXTURE:0, FIXTURE:1"),
    ],
)
def test_one_device_by_name(mtf, fixture_device_plugin, name, code, said):
    ended = mtf("--plugin", fixture_device_plugin("good"), "--no-bundled", "devices", name)

    assert ended.code == code
    assert [line.split("\t")[0] for line in ended.lines] == ["FIXTURE:1"] * (code == 0)
    assert said in ended.err


@pytest.mark.parametrize(
    ("words", "code", "plugin", "message"),
    [
        (["--smoke"], 1, "absent", "broken: rejected: libbroken.so is not an ELF file"),
        ([], 0, "count-fails", "get_device_count: the driver does not answer"),
    ],
)
def test_a_plugin_that_is_named_and_has_no_devices_is_no_success(
    mtf, tmp_path, fixture_device_plugin, plugin, message, words, code
):
    library = tmp_path / "libbroken.so"
    library.write_text("nothing")
    named = library if plugin == "absent" else fixture_device_plugin(plugin)
    ended = mtf("--plugin", named, "--plugin", tmp_path / "nowhere.so", "devices", *words)
    assert ended.code == code
    assert message in ended.err
    assert "nowhere.so does not exist" in ended.err
    assert "CPU:0" in ended.lines[0]


def test_a_device_that_only_describes_itself_has_nothing_to_try(capsys):
    class Described:
        device_type, platform = "NPU", "SIMULATED"

        def device_count(self):
            return 1

    with PluginService(bundled=False) as service:
        service.register_device_factory(Described())
        found, details = service.devices("NPU"), devices.Details(60.0)
        code = devices._try_all(service, found, 60.0, Printer(json=True), details)
    assert code == 0
    assert '"checks": []' in capsys.readouterr().out


def test_memory_and_streams_are_listed_where_they_are_known(mtf, fixture_device_plugin):
    known = r"[\d.]+ \w+ of [\d.]+ \w+ free"
    for variant, free in (("good", known), ("memory-usage-unknown", "")):
        words = ["--plugin", fixture_device_plugin(variant), "--no-bundled", "devices"]
        device = mtf(*words, "--json").object["devices"][0]
        row = mtf(*words).lines[0].split("\t")
        assert (device["error"], device["streams"], row[-1]) == (None, 4, "4")
        assert re.fullmatch(free, row[-2])
        sizes = (device["memory_free"], device["memory_total"])
        assert (sizes == (None, None)) is not bool(free)
