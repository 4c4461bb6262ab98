"""`why`: plugins, files, schemes and device types, present, refused or absent."""

from __future__ import annotations

import json

from modular_tf.rules import Violation
from modular_tf.service.configuration import Config
from modular_tf.service.plugin import Plugin
from modular_tf.service.report import State


def _text(service, name):
    explanation = service.why(name)
    assert explanation.name == name
    told = json.loads(json.dumps(explanation.as_dict()))
    assert set(told) == {"name", "known", "facts", "lines"}
    assert (told["name"], told["known"], told["lines"]) == (
        name,
        explanation.known,
        list(explanation.lines),
    )
    assert {tuple(fact) for fact in told["facts"]} == {
        ("subject", "stage", "text", "rule", "remedy")
    }
    return explanation.known, "\n".join(explanation.lines)


def test_a_plugin_that_serves(plugin_file, make_service):
    plugin = plugin_file("liba.so")
    service = make_service(plugin)
    service.load()
    for name in ("a", str(plugin), str(plugin.parent / "." / "liba.so")):
        known, text = _text(service, name)
        assert known
        assert f"plugin a is loaded: {plugin}" in text
        assert "found by argument" in text


def test_a_plugin_that_nobody_loaded(plugin_file, make_service):
    known, text = _text(make_service(plugin_file("liba.so")), "a")

    assert known
    assert "plugin a is found" in text
    assert "nothing has loaded it yet" in text


def test_a_plugin_that_is_refused(fixture_plugin, make_service):
    service = make_service(fixture_plugin("filesystem-abi"))
    service.load()
    known, text = _text(service, "fixture_filesystem_filesystem_abi")

    assert known
    assert "is failed" in text
    assert "filesystem_ops_abi: expected 0, found 1 [FS-009]" in text
    assert "Rebuild the plugin" in text


def test_a_file_that_nobody_found(make_service, tmp_path, plugin_file):
    broken = tmp_path / "elsewhere" / "libtext.so"
    broken.parent.mkdir()
    broken.write_text("text")
    service = make_service()
    known, text = _text(service, str(broken))

    assert known
    assert "is rejected" in text
    assert "LD-004" in text
    known, text = _text(service, str(plugin_file("elsewhere/libgood.so")))
    assert known
    assert "plugin good is found" in text


def test_a_scheme(plugin_file, make_service, tmp_path):
    plugin_file("liba.so")
    plugin_file("libb.so", "good")
    service = make_service(tmp_path)
    service.load()
    for name in ("fixture", "fixture://"):
        known, text = _text(service, name)
        assert known
        assert "scheme 'fixture' is served by a" in text
        assert "b: scheme 'fixture' of b is taken by a [FS-018]" in text


def test_a_scheme_that_a_refused_plugin_would_serve(fixture_plugin, make_service):
    service = make_service(fixture_plugin("init-fails"))
    service.load()
    known, text = _text(service, "fixture")

    assert known
    assert "the store is down" in text
    assert "FS-019" in text


def test_a_plugin_that_only_mentions_a_scheme_is_no_contest(plugin_file, make_service):
    service = make_service(plugin_file("liba.so"))
    reason = Violation(None, "there is no server for scheme 'other'", "init", scheme="fixture")
    service.entry("a").change(Plugin.ends, State.FAILED, reason)

    assert not _text(service, "other://x")[0]
    known, text = _text(service, "fixture")
    assert known
    assert "a: there is no server for scheme 'other'" in text


def test_a_device_type_and_the_empty_scheme(make_service):
    service = make_service(bundled=True)
    service.load()
    known, text = _text(service, "CPU")
    assert known
    assert "host_device" in text
    assert "serving" in text
    known, text = _text(service, "CPU:0")
    assert known
    known, text = _text(service, "")
    assert known
    assert "scheme '' is served by posix_filesystem" in text


def test_what_is_absent_is_told_with_all_places(make_service, tmp_path):
    service = make_service(config=Config(plugin_dirs=(str(tmp_path / "absent"),)))
    known, text = _text(service, "nonsense")

    assert not known
    assert "nothing is named 'nonsense'" in text
    assert f"config: {tmp_path / 'absent'}" in text
    assert "does not exist" in text


def test_a_scheme_of_a_known_package_is_told_with_the_package(make_service):
    known, text = _text(make_service(), "s3://bucket/key")

    assert not known
    assert "tensorflow-io" in text
