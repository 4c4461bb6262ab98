"""`list`, `schemes`, `devices` and `paths`."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.discovery.site_folder import install


def test_list_shows_the_bundled_plugins(mtf):
    rows = [line.split("\t") for line in mtf("list").lines]
    listed = mtf("list", "--json").object
    found = mtf("list", "--no-load", "--json").object["plugins"]  # which runs no code
    reasons = {line.split("\t")[6] for line in mtf("list", "--no-load").lines}

    assert [row[:5] for row in rows] == [
        ["host_device", "loaded", "device", "CPU", "bundled"],
        ["posix_filesystem", "loaded", "filesystem", "local paths, file://", "bundled"],
        ["ram_filesystem", "loaded", "filesystem", "ram://", "bundled"],
    ]
    assert all(Path(row[5]).is_file() for row in rows)
    assert {(plugin["state"], *plugin["schemes"]) for plugin in found} == {("found",)}
    assert reasons == {"nothing has loaded it yet"}
    assert set(listed) == {"schema_version", "plugins"}
    posix = listed["plugins"][1]
    assert posix == {
        "name": "posix_filesystem",
        "path": rows[1][5],
        "source": "bundled",
        "distribution": None,
        "kinds": ["filesystem"],
        "state": "loaded",
        "schemes": ["", "file"],
        "device_types": [],
        "kernels": 0,
        "ops": 0,
        "reason": None,
        "reasons": [],
        "warnings": [],
    }


def test_list_gives_reasons_and_warnings(mtf, fixture_plugin, tmp_path):
    refused, warned = map(fixture_plugin, ("no-init", "filesystem-api"))
    words = ("list", "--plugin", refused, "--plugin", warned, "--plugin", tmp_path / "nowhere.so")
    ended = mtf(*words)
    refusal, warning = (line.split("\t") for line in ended.lines[:2])
    listed = mtf(*words, "--json").object["plugins"]
    reason, (told,) = listed[0]["reason"], listed[1]["warnings"]

    assert ended.code == 0
    assert "nowhere.so does not exist" in ended.err
    assert [refusal[1], *refusal[4:6]] == ["rejected", "argument", str(refused)]
    assert (reason["stage"], reason["rule"]) == ("probe", "LD-010")
    assert "[LD-010]" in refusal[6]
    assert [warning[1], warning[6]] == ["loaded", ""]
    assert told["message"] in warning[7]
    assert f"[{told['rule']}]" in warning[7]
    assert set(reason) == set(told) == {"stage", "rule", "message", "remedy"}


def test_every_plugin_of_a_folder_that_is_not_loaded_has_a_reason(mtf, fixture_plugin, tmp_path):
    for number, variant in enumerate(["good", "good", "no-init", "filesystem-abi"]):
        shutil.copyfile(fixture_plugin(variant), tmp_path / f"lib{number}.so")
    words = ("--plugin-dir", tmp_path, "--json")
    listed = mtf("list", *words).object["plugins"]
    found = mtf("list", "--no-load", *words).object["plugins"]
    schemes = mtf("schemes", *words).object["schemes"]

    states = [plugin["state"] for plugin in listed]
    assert states[:4] == ["loaded", "shadowed", "rejected", "failed"]
    for plugin in [*listed, *found]:
        assert bool(plugin["reasons"]) is (plugin["state"] != "loaded")
        assert plugin["reason"] == (plugin["reasons"] or [None])[0]
    assert found[0]["reason"]["message"] == "nothing has loaded it yet"
    assert "fixture" in [entry["scheme"] for entry in schemes]


@pytest.mark.parametrize("verb", ["list", "schemes", "devices"])
def test_nothing_found_is_3_and_an_empty_list(mtf, verb):
    ended = mtf(verb, "--no-bundled")
    as_json = mtf(verb, "--no-bundled", "--json")

    assert (ended.code, ended.out) == (3, b"")
    assert "modular-tf: no" in ended.err
    assert as_json.code == 3
    assert [value for key, value in as_json.object.items() if key != "schema_version"] == [[]]


def test_schemes_are_listed_with_their_plugins(mtf):
    assert mtf("schemes").lines == [
        "(local paths)\tposix_filesystem",
        "file\tposix_filesystem",
        "ram\tram_filesystem",
    ]
    listed = mtf("schemes", "--json").object
    assert listed["schemes"][2] == {"scheme": "ram", "plugin": "ram_filesystem"}
    assert (set(listed), listed["schema_version"]) == ({"schema_version", "schemes"}, 1)


def test_devices_are_listed_with_what_is_known_of_them(mtf):
    device = mtf("devices", "--json").object["devices"][0]

    assert {key: device[key] for key in ("device_type", "ordinal", "priority", "plugin")} == {
        "device_type": "CPU",
        "ordinal": 0,
        "priority": 60,
        "plugin": "host_device",
    }
    assert device["platform"]
    assert device["hardware_name"]
    assert set(device) >= {"vendor", "pci_bus_id", "numa_node", "memory_bandwidth", "gflops"}
    assert mtf("devices").lines[0].split("\t")[0] == device["name"]
    assert (mtf("devices", "CPU").code, mtf("devices", "NOBODY").code) == (0, 3)


def test_paths_report_what_was_searched_and_found(mtf, fixture_plugin, tmp_path):
    plugin = fixture_plugin("good")
    words = ("paths", "--plugin", plugin, "--plugin", tmp_path / "no", "--plugin-dir", tmp_path)
    places = mtf(*words, "--json").object["paths"]
    lines = mtf(*words).lines  # one for each place

    assert places[0] == {
        "path": str(plugin),
        "source": "argument",
        "origin": places[0]["origin"],
        "exists": True,
        "hits": 1,
        "ignored": None,
    }
    assert (places[1]["exists"], places[1]["hits"]) == (False, 0)
    assert places[-1]["source"] == "bundled"
    assert sum(place["hits"] for place in places if place["source"] == "bundled") == 3
    assert lines[2].split("\t")[:3] == ["argument", "0 libraries", str(tmp_path)]
    assert "3 libraries" in "\n".join(lines)


def test_paths_report_every_setting_and_what_decided_it(mtf, tmp_path, monkeypatch):
    file = tmp_path / "mine.toml"
    file.write_text(
        f'plugin_dirs = ["{tmp_path}/mine"]\nfirst_contact_timeout_s = 7\nload = "eager"\n'
        "[memory.GPU]\nlimit_bytes = 67108864\n"
    )
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(file))
    monkeypatch.setenv("MODULAR_TF_LOAD", "lazy")
    monkeypatch.setenv("MODULAR_TF_FIRST_CONTACT", "always")
    found = mtf("paths", "--json").object
    decided = {
        setting["key"]: (setting["value"], setting["origin"]) for setting in found["settings"]
    }

    assert found["config"] == {"path": str(file), "used": True}
    assert f"{tmp_path}/mine" in [place["path"] for place in found["paths"]]
    assert decided["first_contact_timeout_s"] == (7, str(file))
    assert decided["load"] == ("lazy", "MODULAR_TF_LOAD")
    assert decided["first_contact"] == ("always", "MODULAR_TF_FIRST_CONTACT")
    assert decided["copy_streams"] == (1, "default")
    assert decided["memory"][1] == str(file)
    assert found["own_places"]["lock"] == str(tmp_path / "modular-tf.lock")
    assert found["own_places"]["cache"].endswith("modular_tf")


def test_paths_report_which_variables_and_places_are_not_used(mtf, tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    ended = mtf("paths", "--json")
    found = ended.object

    assert found["ignored_variables"] == [{"name": "XDG_DATA_HOME", "value": "data"}]
    assert "XDG_DATA_HOME is ignored: expected an absolute path, found 'data'" in ended.err
    assert "[LD-105]" in ended.err
    assert found["own_places"]["cache"] == str(tmp_path / "shared" / "modular_tf")
    assert list(found["unused_places"]) == ["cache"]
    assert "has mode 0777, so anybody may write to it" in found["unused_places"]["cache"]


def test_paths_list_hooks_in_the_order_of_their_calls(mtf, tmp_path, monkeypatch):
    """To programs and to a person, not in a pipe; one that cannot be imported is named."""
    (tmp_path / "listed_hooks.py").write_text(
        "from modular_tf.hookspecs import hookimpl\n"
        "@hookimpl(tryfirst=True, wrapper=True)\n"
        "def modular_tf_veto():\n"
        "    return (yield)\n"
        "@hookimpl\n"
        "def modular_tf_outcome(record):\n"
        "    pass\n"
    )
    hooks = "[modular_tf.hooks]\ngood = listed_hooks\nbroken = no_such_module\n"
    install(tmp_path, "hooked_package", entry_points=hooks)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = mtf("paths", "--json").object
    in_pipe = mtf("paths").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    lines = [re.sub(r"\x1b\[\d*m", "", line).split() for line in mtf("paths").lines]

    good = "hooked-package 1.0: good"
    fields = ("hook", "implementation", "order", "wrapper")
    assert [tuple(map(function.get, fields)) for function in found["hooks"]] == [
        ("modular_tf_veto", good, "tryfirst", True),
        ("modular_tf_outcome", good, None, False),
    ]
    (failure,) = found["hook_failures"]
    assert "loading hooked-package 1.0: broken failed: " in failure["message"]
    assert b"hooked-package" not in in_pipe
    start = lines.index(["HOOK", "IMPLEMENTATION", "CALLED"])
    assert lines[start + 1] == ["modular_tf_veto", *good.split(), "tryfirst,", "wrapper"]
    assert lines[start + 2 : start + 5] == [
        ["modular_tf_outcome", *good.split()], [], ["FAILED", "HOOKS"],
    ]  # fmt: skip
    assert lines[start + 5][:4] == ["loading", "hooked-package", "1.0:", "broken"]


def test_paths_without_a_home(mtf, monkeypatch):
    for variable in os.environ:
        if variable.startswith("XDG_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", "")
    ended = mtf("paths", "--json")

    assert ended.object["config"] == {"path": None, "used": False}
    assert ended.object["own_places"] == {"cache": None, "state": None, "lock": None}
    assert mtf("lock").code == 2
    assert "name the lock file with --output: there is no home" in mtf("lock").err
