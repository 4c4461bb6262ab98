"""What a service makes of trust: what is refused, what is shown, and what is never loaded."""

import os
import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.linking import link_scope
from modular_tf.errors import ModularTFError
from modular_tf.loading import binding
from modular_tf.service import plugins as known_plugins
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library

TRACING = Path(__file__).parents[1] / "loading" / "tracing_plugin.c"


@pytest.fixture
def place(tmp_path):
    """Return a path in a directory of its own."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder / "libx.so"


@pytest.fixture
def good(fixture_plugin, place):
    """Put a plugin that serves into the place."""
    shutil.copy(fixture_plugin("good"), place)
    return place


@pytest.fixture
def evil():
    """Return a library that leaves a trace when it is mapped."""
    return link_library("libevil.so", [compile_object(TRACING, ['NAME="evil"'])])


def swap_in(evil, place):
    new = place.with_name("new")
    shutil.copy(evil, new)
    new.replace(place)


def service(*paths, **options):
    return PluginService(plugin_paths=paths, bundled=False, **options)


def test_what_a_stranger_could_write_is_not_followed(place, fixture_plugin, monkeypatch):
    """What a file needs, how long that takes to find, and what is read of it, is up to it."""
    shutil.copy(fixture_plugin("companion"), place)
    place.chmod(0o666)
    looked = []
    monkeypatch.setattr(link_scope, "ask_linker", lambda needed, **_: looked.extend(needed))
    monkeypatch.setattr(known_plugins, "see_library", looked.append)

    with service(place) as plugins:
        (record,) = plugins.discover().plugins

    assert (record.state, record.reason.rule) == (State.REJECTED, "LD-076")
    assert record.kinds == ("filesystem",)
    assert not {"libfixture_companion.so", str(place)} & set(looked)


@pytest.mark.parametrize("when", ["search", "first contact", "first use"])
def test_a_file_that_is_swapped_before_it_is_mapped_is_not_loaded(
    when, good, evil, traces, monkeypatch
):
    bind = binding.bind

    def swap_first(*arguments, **options):
        swap_in(evil, good)
        return bind(*arguments, **options)

    first_contact = "never" if when == "search" else "always"
    load = "lazy" if when == "first use" else "eager"
    config = Config(first_contact=first_contact, load=load)
    with service(good, config=config) as plugins:
        if when == "search":
            plugins.discover()
            swap_in(evil, good)
        elif when == "first contact":
            monkeypatch.setattr(binding, "bind", swap_first)
        (record,) = plugins.load().plugins
        if when == "first use":
            assert record.state is State.LOADED
            assert os.fsencode(good) not in Path("/proc/self/maps").read_bytes()
            swap_in(evil, good)
            with pytest.raises(ModularTFError, match="LD-082"):
                plugins.filesystem("fixture").path_exists("fixture://h/x")
        elif when == "first contact":
            assert (record.state, record.reason.rule) == (State.FAILED, "LD-082")
        else:
            assert record.state in {State.FAILED, State.REJECTED}
    assert traces.names == []


def test_the_same_bytes_are_loaded_whatever_became_of_file_and_rights(good):
    """Installing a package again replaces its files by such."""
    with service(good) as plugins:
        plugins.discover()
        new = good.with_name("new")
        shutil.copy(good, new)
        new.replace(good)
        good.chmod(0o755)
        os.utime(good)

        assert plugins.load()["x"].state is State.LOADED
        decisions = plugins.entry("x").plugin.decisions

    (decision,) = (found for found in decisions if found.stage == "trust")
    assert decision.rule == "LD-075"
