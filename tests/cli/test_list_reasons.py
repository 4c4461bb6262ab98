"""What `list` says of plugins that are not loaded, and of those that are in spite of something."""

from __future__ import annotations

import shutil

from modular_tf.cli.plugins import show_plugins
from tests.cli.test_printer import on_terminal


def test_list_gives_a_reason_for_every_plugin_that_is_not_loaded(mtf, fixture_plugin, tmp_path):
    for number, variant in enumerate(["good", "good", "no-init", "filesystem-abi"]):
        shutil.copyfile(fixture_plugin(variant), tmp_path / f"lib{number}.so")
    listed = mtf("list", "--plugin-dir", tmp_path, "--json").object["plugins"]
    looked = mtf("list", "--plugin-dir", tmp_path, "--json", "--no-load").object["plugins"]

    states = [plugin["state"] for plugin in listed]
    assert states[:4] == ["loaded", "shadowed", "rejected", "failed"]
    for plugin in [*listed, *looked]:
        assert bool(plugin["reasons"]) is (plugin["state"] != "loaded")
        assert plugin["reason"] == (plugin["reasons"] or [None])[0]
    assert looked[0]["reason"]["message"] == "nothing has loaded it yet"


def test_list_shows_warnings(mtf, fixture_plugin):
    path = fixture_plugin("filesystem-api")
    (warning,) = mtf("list", "--plugin", path, "--json").object["plugins"][0]["warnings"]
    row = mtf("list", "--plugin", path).lines[0].split("\t")

    assert set(warning) == {"stage", "rule", "message", "remedy"}
    assert row[1] == "loaded"
    assert row[6] == ""
    assert warning["message"] in row[7]
    assert f"[{warning['rule']}]" in row[7]


RECORD = {
    "name": "a",
    "state": "failed",
    "path": "/p/liba.so",
    "source": "argument",
    "distribution": None,
    "kinds": ["filesystem"],
    "schemes": [],
    "device_types": [],
    "kernels": 0,
    "ops": 0,
    "reasons": [
        {"stage": "init", "rule": "FS-013", "message": "no cleanup", "remedy": "Have one."},
        {"stage": "init", "rule": None, "message": "its own words", "remedy": None},
    ],
    "warnings": [{"stage": "init", "rule": "LD-056", "message": "odd", "remedy": None}],
}


def test_a_person_sees_every_reason_under_the_table():
    seen = on_terminal(lambda printer: show_plugins([RECORD], printer, with_warnings=False))

    assert "a (/p/liba.so)\n  failed: no cleanup [FS-013] Have one.\n" in seen
    assert "  failed: its own words\n" in seen
    assert "odd" not in seen
    assert "1 warning; `modular-tf list -v` shows more" in seen


def test_a_person_sees_warnings_when_asked_for():
    seen = on_terminal(lambda printer: show_plugins([RECORD], printer, with_warnings=True))

    assert "  warning: odd [LD-056]\n" in seen
    assert "list -v" not in seen
