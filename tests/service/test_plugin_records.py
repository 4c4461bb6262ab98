"""What a service knows of a plugin is a value, which each stage replaces by the next."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

import pytest

from modular_tf.service.configuration import Config
from modular_tf.service.plugin import PluginEntry
from modular_tf.service.report import State
from modular_tf.service.service import PluginService

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def service(plugin_file):
    """Return a service of one file, which has found it."""
    config = Config(first_contact="never", load="lazy")
    path = plugin_file("libone.so")
    with PluginService(config=config, plugin_paths=[path], bundled=False) as made:
        made.discover()
        yield made


def test_a_record_stays_as_it_was_when_the_plugin_goes_on(service):
    found = service.entry("one").plugin
    service.load()
    loaded = service.entry("one").plugin

    assert (found.state, found.outcome) == (State.FOUND, None)
    assert [decision.stage for decision in found.decisions] == ["trust", "probe"]
    assert loaded.state is State.LOADED
    assert loaded.outcome.schemes == ("fixture",)
    assert loaded.decisions[:2] == found.decisions


def test_nobody_sets_what_a_record_says(service):
    entry = service.entry("one")

    for name in (*type(entry.plugin)._fields, "state", "reasons"):
        with pytest.raises(AttributeError):
            setattr(entry.plugin, name, None)
    with pytest.raises(AttributeError):
        entry.plugin = entry.plugin._replace(name="other")


def test_a_change_that_comes_in_the_middle_of_another_is_not_lost(service):
    entry = service.entry("one")
    other = threading.Thread(
        target=entry.change, args=(lambda before: before._replace(sealed=True),)
    )

    def step(plugin):
        other.start()
        return plugin._replace(name="other")

    entry.change(step)
    other.join()
    assert (entry.plugin.name, entry.plugin.sealed) == ("other", True)


def test_what_became_of_a_plugin_at_its_first_use_is_in_its_record(plugin_file):
    path = plugin_file("libone.so")
    config = Config(first_contact="new", load="lazy")
    with PluginService(config=config, plugin_paths=[path], bundled=False) as service:
        service.load()
        entry = service.entry("one")
        promised = entry.plugin
        service.filesystem("fixture")

    assert isinstance(entry, PluginEntry)
    assert promised.outcome.finding is None
    assert entry.plugin.outcome.finding.offer.schemes == ("fixture",)
    assert entry.plugin.decisions == promised.decisions


@pytest.mark.parametrize(
    "name",
    ["library_loading", "deferred_library", "registrations", "pipeline",
     "plugin", "plugins", "report"],
)  # fmt: skip
def test_the_main_way_knows_nothing_of_replacement(name):
    module = importlib.import_module(f"modular_tf.service.{name}")
    text = Path(module.__file__).read_text(encoding="utf-8")

    assert "service.reload" not in text
    assert "predecessor" not in text
    assert "successor" not in text
