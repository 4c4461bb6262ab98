"""`why` of what a service refused; `tests.explanation` has the rest."""

from __future__ import annotations

from modular_tf.rules import Violation
from modular_tf.service.plugin import Plugin
from modular_tf.service.report import State


def explained(service, name):
    explanation = service.why(name)
    assert explanation.known
    assert explanation.name == name
    assert {tuple(fact) for fact in explanation.as_dict()["facts"]} == {
        ("subject", "stage", "text", "rule", "remedy")
    }
    return "\n".join(explanation.lines)


def test_a_plugin_has_several_names_and_is_found_until_it_is_loaded(plugin_file, make_service):
    plugin = plugin_file("liba.so")
    service = make_service(plugin)
    assert "plugin a is found" in explained(service, "a")
    assert "nothing has loaded it yet" in explained(service, "a")

    service.load()

    for name in ("a", str(plugin), str(plugin.parent / "." / "liba.so")):
        assert f"plugin a is loaded: {plugin}" in explained(service, name)


def test_a_refused_plugin_is_explained_with_rule_and_remedy(fixture_plugin, make_service, tmp_path):
    (tmp_path / "libtext.so").write_text("text")
    service = make_service(fixture_plugin("filesystem-abi"), fixture_plugin("init-fails"))
    service.load()

    failed = explained(service, "fixture_filesystem_filesystem_abi")
    assert "is failed" in failed
    assert "filesystem_ops_abi: expected 0, found 1 [FS-009]" in failed
    assert "Rebuild the plugin" in failed
    of_scheme = explained(service, "fixture")
    assert "the store is down" in of_scheme
    assert "FS-019" in of_scheme
    rejected = explained(service, str(tmp_path / "libtext.so"))
    assert "is rejected" in rejected
    assert "LD-004" in rejected


def test_a_plugin_that_only_mentions_a_scheme_is_no_contest(plugin_file, make_service):
    service = make_service(plugin_file("liba.so"))
    reason = Violation(None, "there is no server for scheme 'other'", "init", scheme="fixture")
    service.entry("a").change(Plugin.ends, State.FAILED, reason)

    assert not service.why("other://x").known
    assert "a: there is no server for scheme 'other'" in explained(service, "fixture")


def test_the_empty_scheme_is_explained(make_service):
    service = make_service(bundled=True)
    service.load()

    assert "scheme '' is served by posix_filesystem" in explained(service, "")
    assert "host_device" in explained(service, "CPU")
