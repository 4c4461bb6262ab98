"""`--log`, `-v` and `MODULAR_TF_LOG`: the log of a command, beside its result."""

import json

import pytest


def events(ended):
    return [json.loads(line) for line in ended.err.splitlines()]


def test_nothing_or_json_lines_on_request_whose_level_verbosity_chooses(mtf):
    assert mtf("list").err == mtf("list", "--log", "off", "-v").err == ""
    ended = mtf("list", "--log", "json")
    outcomes = {e["level"] for e in events(mtf("list", "--log", "json", "-v"))}
    steps = {e["level"] for e in events(mtf("list", "--log", "json", "-vv"))}

    assert {"plugin.processed", "scheme.registered"} <= {e["event"] for e in events(ended)}
    assert ended.lines == mtf("list").lines
    assert outcomes == {"info"}
    assert steps == {"debug", "info"}


def test_a_rejected_file_is_a_warning_and_a_disabled_plugin_is_not(mtf, monkeypatch, tmp_path):
    (tmp_path / "libjunk.so").write_text("no library")
    (tmp_path / "config.toml").write_text('disable = ["ram_filesystem"]')
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(tmp_path / "config.toml"))

    found = events(mtf("list", "--plugin-dir", tmp_path, "--log", "json", "-v"))

    levels = {e["plugin"]: e["level"] for e in found if e["event"] == "plugin.processed"}
    assert levels["junk"] == "warning"
    assert levels["ram_filesystem"] == "info"


@pytest.mark.parametrize(("option", "shown"), [((), True), (("--log", "off"), False)])
def test_the_environment_speaks_where_the_command_line_is_silent(
    mtf_process, monkeypatch, option, shown
):
    monkeypatch.setenv("MODULAR_TF_LOG", "json")
    ended = mtf_process("list", *option)

    assert ended.code == 0
    assert bool(events(ended)) is shown


def test_one_v_is_pretty_and_an_unknown_form_wrong_usage(mtf):
    pretty, ended = mtf("schemes", "-v"), mtf("list", "--log", "xml")

    assert "[info" in pretty.err
    assert "scheme.registered" in pretty.err
    assert ended.code == 2
    assert "'xml' is not one of" in ended.err
