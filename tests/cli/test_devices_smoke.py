"""`devices --smoke`: what works on good devices, and what does not on faulty ones."""

from __future__ import annotations

import threading

import pytest

from modular_tf.cli import devices
from modular_tf.cli.output import Printer
from modular_tf.service.service import PluginService

CHECKS = ["allocate", "copy", "copy_within", "fill", "event", "timer", "callback"]
COPIES = {"copy", "copy_within"}

FAULTS = {
    "allocate-null": (set(CHECKS), "gave no memory"),
    "copies-fail": ({*COPIES, "fill"}, "a bus error"),
    "create-stream-fails": (set(CHECKS) - {"allocate"}, "no stream is left"),
    "stream-status-bad": ({*COPIES, "fill", "timer", "callback"}, "an earlier kernel failed"),
    "event-error": ({"event", "timer"}, "ERROR"),
    "event-unknown": ({"event", "timer"}, "UNKNOWN"),
    "callback-refused": ({"callback"}, "host_callback returned 0"),
    "create-device-fails": (set(CHECKS), "the device is in use"),
}
"""What a variant of the fixture plugin cannot do, and what is in each message about it."""


@pytest.fixture
def smoke(mtf, fixture_device_plugin):
    """Try the devices of a fixture plugin; return how the command ended."""

    def run(variant, *words):
        library = fixture_device_plugin(variant)
        return mtf("--plugin", library, "--no-bundled", "devices", "--smoke", *words)

    return run


@pytest.mark.parametrize(
    "variant",
    [
        *("good", "handles-null", "structs-replaced", "memory-usage-unknown"),
        *("dialect-2.7", "dialect-2.5", "dialect-rfc"),
    ],
)
def test_everything_works_on_a_good_device(smoke, variant):
    ended = smoke(variant, "--json")
    assert (ended.code, ended.err) == (0, "")
    devices = ended.object["devices"]
    assert [device["name"] for device in devices] == ["FIXTURE:0", "FIXTURE:1"]
    for device in devices:
        assert device["works"] is True
        assert [check["check"] for check in device["checks"]] == CHECKS
        assert all(check["works"] and check["elapsed_ms"] > 0 for check in device["checks"])


def test_each_device_has_a_process_of_its_own(smoke):
    """Both devices of the plugin share one memory, and the arena of each takes it all."""
    ended = smoke("bfc-allocator", "--json")
    assert (ended.code, [device["works"] for device in ended.object["devices"]]) == (
        0,
        [True, True],
    )


def test_a_crash_is_told_and_the_rest_is_tried_nevertheless(smoke):
    ended = smoke("copies-crash", "--json")
    assert ended.code == 1
    assert "2 of 2 devices failed: FIXTURE:0, FIXTURE:1" in ended.err
    for device in ended.object["devices"]:
        assert device["hardware_name"]
        checks = {check["check"]: check for check in device["checks"]}
        assert list(checks) == CHECKS
        assert {name for name in CHECKS if not checks[name]["works"]} == {*COPIES, "fill"}
        for name in (*COPIES, "fill"):
            assert checks[name]["message"].startswith("the process crashed with SIGSEGV")
            assert "libfixture_device_copies_crash.so" in checks[name]["message"]


def test_what_a_plugin_prints_is_no_result(smoke, monkeypatch):
    monkeypatch.setenv("MODULAR_TF_LOG", "off")
    assert smoke("copies-crash").lines[0].split("\t")[:3] == ["FIXTURE:0", "allocate", "works"]


@pytest.mark.parametrize("variant", FAULTS)
def test_a_fault_is_told_and_the_rest_is_tried_nevertheless(smoke, variant):
    faulty, says = FAULTS[variant]
    ended = smoke(variant, "--json")
    assert ended.code == 1
    assert "2 of 2 devices failed: FIXTURE:0, FIXTURE:1" in ended.err
    for device in ended.object["devices"]:
        assert device["works"] is False
        failed = {
            check["check"]: check["message"] for check in device["checks"] if not check["works"]
        }
        assert set(failed) == faulty
        assert all(says in message for message in failed.values())


def test_one_bad_device_leaves_the_other_alone(smoke):
    ended = smoke("create-second-device-fails", "--json")
    assert [device["works"] for device in ended.object["devices"]] == [True, False]
    assert ended.code == 1
    assert "1 of 2 devices failed: FIXTURE:1" in ended.err


def test_an_emulated_timer_works_and_says_so(smoke):
    ended = smoke("no-timers", "--json")
    assert ended.code == 0
    [timer] = [c for c in ended.object["devices"][0]["checks"] if c["check"] == "timer"]
    assert timer["works"]
    assert "host's clock" in timer["message"]


def test_a_line_for_each_check(smoke):
    rows = [line.split("\t") for line in smoke("callback-refused").lines]
    assert [row[:3] for row in rows[:7]] == [
        ["FIXTURE:0", check, "failed" if check == "callback" else "works"] for check in CHECKS
    ]
    assert "host_callback returned 0" in rows[6][4]
    assert len(rows) == 14


def test_the_bundled_device_works(mtf):
    ended = mtf("devices", "--smoke", "CPU", "--json")
    assert ended.code == 0
    [device] = ended.object["devices"]
    assert device["name"] == "CPU:0"
    assert device["works"]


def test_no_device_is_3(mtf):
    ended = mtf("devices", "--smoke", "NOBODY", "--json")
    assert (ended.code, ended.object["devices"]) == (3, [])
    assert "no device 'NOBODY'; there are: CPU:0" in ended.err


def test_a_call_that_never_returns_is_given_up(mtf_process, fixture_device_plugin):
    library = fixture_device_plugin("copies-hang")
    words = ["devices", "--smoke", "--json", "--timeout", "3"]
    ended = mtf_process("--plugin", library, *words)
    assert ended.code == 1
    assert "2 of 3 devices failed: FIXTURE:0, FIXTURE:1" in ended.err
    for device in ended.object["devices"]:
        if device["device_type"] == "CPU":
            assert device["works"]
            continue
        checks = {check["check"]: check for check in device["checks"]}
        assert list(checks) == CHECKS
        assert checks["allocate"]["works"]
        assert checks["copy"]["message"].startswith("the plugin did not come back within 3 s, at ")
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
    said = "modular-tf: NPU:0: no details yet; the wait ends after 0.05 s\n"
    assert capsys.readouterr().err == (said if is_terminal else "")


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "soon", "inf"])
def test_a_limit_is_a_number_of_seconds(mtf, limit):
    ended = mtf("devices", "--timeout", limit)
    assert ended.code == 2
    assert "no number of seconds" in ended.err


@pytest.mark.parametrize("name", ["FIXTURE:1", "/device:FIXTURE:1", "/physical_device:FIXTURE:1"])
def test_one_device_by_name(smoke, name):
    ended = smoke("good", name, "--json")
    assert ended.code == 0
    assert [device["name"] for device in ended.object["devices"]] == ["FIXTURE:1"]


def test_what_is_no_name_says_so(smoke):
    ended = smoke("good", "FIX-TURE:1")
    assert ended.code == 1
    assert "'FIX-TURE:1' is no device name" in ended.err


def test_another_case_is_another_type_and_says_which_there_are(smoke):
    ended = smoke("good", "fixture:1")
    assert ended.code == 3
    assert "no device 'fixture:1'; there are: FIXTURE:0, FIXTURE:1" in ended.err


@pytest.mark.parametrize(("words", "code"), [(("--smoke",), 1), ((), 0)])
def test_a_plugin_that_is_named_and_absent_is_no_success(mtf, tmp_path, words, code):
    (tmp_path / "libbroken.so").write_text("nothing")
    ended = mtf("--plugin", tmp_path / "libbroken.so", "devices", *words)
    assert ended.code == code
    assert "broken: rejected: libbroken.so is not an ELF file" in ended.err
    assert "CPU:0" in ended.lines[0]


@pytest.mark.parametrize(("words", "code"), [(("--smoke",), 1), ((), 0)])
def test_devices_that_cannot_be_counted_are_missed(mtf, fixture_device_plugin, words, code):
    ended = mtf("--plugin", fixture_device_plugin("count-fails"), "devices", *words)
    assert ended.code == code
    assert "get_device_count: the driver does not answer" in ended.err


def test_a_device_that_cannot_be_created_is_named_once(mtf, fixture_device_plugin):
    library = fixture_device_plugin("create-second-device-fails")
    ended = mtf("--plugin", library, "--no-bundled", "devices")
    assert ended.code == 0
    assert ended.err.startswith("modular-tf: FIXTURE:1: create_device: the device is in use")


def test_a_path_that_does_not_exist_is_told(mtf, tmp_path):
    ended = mtf("--plugin", tmp_path / "nowhere.so", "devices")
    assert "nowhere.so does not exist" in ended.err


def test_a_device_that_only_describes_itself_has_nothing_to_try(capsys):
    class Described:
        device_type, platform = "NPU", "SIMULATED"

        def device_count(self):
            return 1

    with PluginService(bundled=False) as service:
        service.register_device_factory(Described())
        found, details = service.devices("NPU"), devices.Details(60.0)
        code = devices._try_all(service, found, 60.0, Printer(json=True), details)
        listed = service.devices("NPU")[0].to_dict()
    assert code == 0
    assert '"checks": []' in capsys.readouterr().out
    assert (listed["memory_free"], listed["memory_total"], listed["streams"]) == (None, None, None)


def test_memory_and_streams_are_listed(mtf, fixture_device_plugin):
    words = ["--plugin", fixture_device_plugin("good"), "--no-bundled", "devices"]
    device = mtf(*words, "--json").object["devices"][0]
    assert 0 < device["memory_free"] <= device["memory_total"]
    assert device["streams"] == 4
    row = mtf(*words).lines[0].split("\t")
    assert row[-1] == "4"
    assert row[-2].endswith("free")


def test_unknown_memory_is_left_blank(mtf, fixture_device_plugin):
    library = fixture_device_plugin("memory-usage-unknown")
    words = ["--plugin", library, "--no-bundled", "devices"]
    device = mtf(*words, "--json").object["devices"][0]
    assert (device["memory_free"], device["memory_total"], device["error"]) == (None, None, None)
    assert mtf(*words).lines[0].split("\t")[-2] == ""
