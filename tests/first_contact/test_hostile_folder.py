"""Nothing in a folder of hostile libraries takes the application down, and each is explained."""

from __future__ import annotations

import json

import pytest

from tests.first_contact.conftest import processes_with
from tests.first_contact.hostile_folder import fill

# The application: lists the folder, and uses what is good in it.
SERVE = """
    import json, os, signal, sys
    import modular_tf as mtf
    before = signal.getsignal(signal.SIGINT), sorted(os.listdir("/proc/self/fd"))
    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        records = {}
        for record in service.load().plugins:
            reason = record.reason
            told = reason and [reason.rule, reason.message] or [None, None]
            records[record.name] = [record.state.value, *told]
        for scheme in ("good0", "good1"):
            filesystem = service.filesystem(scheme)
            with filesystem.new_writable_file(f"{scheme}://host/file") as file:
                file.append(b"works")
            assert filesystem.get_file_size(f"{scheme}://host/file") == 5
        devices = [device.name for device in service.devices("GOOD")]
        assert service.device("GOOD:1").hardware_name == "Fixture 1000"
    with open("/proc/self/maps") as maps:
        mapped = sorted({line.split("/lib")[-1].strip() for line in maps if sys.argv[1] in line})
    try:
        left = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        left = None
    assert signal.getsignal(signal.SIGINT) is before[0]
    print(json.dumps([records, devices, mapped, left]), flush=True)
    os._exit(0)  # what chance has left of a damaged plugin's destructors is not the matter
"""
LIMITS = "first_contact_timeout_s = 3\n"
STATED_BOUND_S = 200  # on a machine that is busy with other tests; alone it takes a tenth


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    return folder, fill(folder)


@pytest.fixture
def environment(tmp_path):
    """A machine on which nothing is known yet."""
    (tmp_path / "modular-tf.toml").write_text(LIMITS)
    homes = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "STATE", "DATA")}
    return {**homes, "MODULAR_TF_CONFIG": str(tmp_path / "modular-tf.toml"), "LC_ALL": "C"}


def test_there_are_enough_of_them(hostile):
    _, libraries = hostile
    bad = [library for library in libraries if library.rule is not None]

    assert len(bad) >= 40
    assert {library.rule for library in bad} >= {f"LD-06{n}" for n in (0, 1, 2, 4, 6, 7, 8)}


def test_the_application_keeps_running_and_the_good_ones_serve(hostile, environment, run_python):
    folder, libraries = hostile
    child = run_python(SERVE, folder, env=environment, timeout=STATED_BOUND_S)
    records, devices, mapped, left = json.loads(child.stdout)

    assert devices == ["GOOD:0", "GOOD:1"]
    assert {name: record[0] for name, record in records.items() if name.startswith("good_")} == {
        "good_0": "loaded",
        "good_1": "loaded",
        "good_device": "loaded",
    }
    assert _misjudged(libraries, records) == {}
    assert [name for name in mapped if _is_quarantined(name, records)] == []
    assert left is None
    assert processes_with(folder) == []


def _misjudged(libraries, records):
    """Return the libraries of which something else is said than must be."""
    return {
        library.name: records.get(library.name)
        for library in libraries
        if library.name not in records
        or records[library.name][0] not in library.states
        or (library.rule is not None and records[library.name][1] != library.rule)
        or (records[library.name][0] != "loaded" and not records[library.name][2])
    }


def _is_quarantined(mapped, records):
    return records.get(mapped.removesuffix(".so"), ["unknown"])[0] == "quarantined"


def test_the_command_line_lists_each_with_its_reason(hostile, environment, run_python):
    folder, libraries = hostile
    code = """
    import os, sys
    from modular_tf.cli.main import run
    status = run(["--plugin-dir", sys.argv[1], "--no-bundled", "--json", "list"])
    sys.stdout.flush()
    os._exit(status)
    """
    child = run_python(code, folder, env=environment, timeout=STATED_BOUND_S)
    plugins = {plugin["name"]: plugin for plugin in json.loads(child.stdout)["plugins"]}
    records = {}
    for name, plugin in plugins.items():
        reason = plugin["reason"] or {}
        records[name] = [plugin["state"], reason.get("rule"), reason.get("message")]

    assert _misjudged(libraries, records) == {}
    assert plugins["good_0"]["schemes"] == ["good0"]
    assert plugins["good_device"]["device_types"] == ["GOOD"]
    assert all(p["reason"]["remedy"] for p in plugins.values() if p["state"] == "quarantined")
    assert processes_with(folder) == []
