"""`why` by the names of a plugin, and of what one mentions; `tests.explanation` has the rest."""

from __future__ import annotations

from modular_tf.rules import Violation
from modular_tf.service.plugin import Plugin
from modular_tf.service.report import State


def test_a_plugin_has_several_names_and_is_found_until_it_is_loaded(plugin_file, make_service):
    plugin = plugin_file("liba.so")
    service = make_service(plugin)
    said = "\n".join(service.why("a").lines)
    assert "plugin a is found" in said
    assert "nothing has loaded it yet" in said

    service.load()

    for name in ("a", str(plugin), str(plugin.parent / "." / "liba.so")):
        assert f"plugin a is loaded: {plugin}" in "\n".join(service.why(name).lines)


def test_a_plugin_that_only_mentions_a_scheme_is_no_contest(plugin_file, make_service):
    service = make_service(plugin_file("liba.so"))
    reason = Violation(None, "there is no server for scheme 'other'", "init", scheme="fixture")
    service.entry("a").change(Plugin.ends, State.FAILED, reason)

    assert not service.why("other://x").known
    assert any(f"a: {reason.message}" in line for line in service.why("fixture").lines)
