"""A search path with an empty directory lets nobody's library in from the current directory.

The plugin needs a library that the system has; LD_LIBRARY_PATH stands for the system, since tests
install nothing there. Each library leaves a trace when its code begins to run.
"""

from functools import partial

import pytest

from tests.trust.opening import opened_library, opening_plugin

BEGIN = """
    import os
    os.chdir(os.environ["BEGINS_IN"])
"""
NAME = "libneeded.so"


@pytest.fixture
def system(tmp_path):
    return opened_library(tmp_path / "system" / NAME, "system", soname=NAME)


@pytest.fixture
def plugin(system, tmp_path):
    """Build a plugin with a search path, which comes before the system's libraries."""

    def build(search_path):
        options = ["-Wl,--no-as-needed", str(system), "-Wl,--disable-new-dtags"]
        return opening_plugin(tmp_path / "libx.so", options=[*options, f"-Wl,-rpath,{search_path}"])

    return build


@pytest.fixture
def load_and_use(load, system, monkeypatch):
    """Load a plugin in one current directory, and use it in another."""
    monkeypatch.delenv("MODULAR_TF_FIRST_CONTACT")
    return partial(load, first=BEGIN, load="lazy", LD_LIBRARY_PATH=system.parent)


@pytest.mark.parametrize("search_path", [":/nowhere", "./"])
def test_a_library_there_that_anybody_may_write_to_is_refused(
    search_path, plugin, load_and_use, traces, tmp_path
):
    evil = opened_library(tmp_path / "checkout" / NAME, "evil", soname=NAME)
    evil.chmod(0o666)

    [refused] = load_and_use(plugin(search_path), first_contact="new", BEGINS_IN=evil.parent)

    assert refused.outcome == ("rejected", "LD-076")
    assert f"{evil} has mode 0666" in refused.message
    assert traces.names == []


@pytest.mark.parametrize(("search_path", "first_contact"), [("/nowhere:", "new"), (".", "never")])
def test_a_library_where_the_plugin_is_used_is_not_mapped(
    search_path, first_contact, plugin, load_and_use, traces, tmp_path
):
    """What is mapped is what was judged, wherever the program has gone since."""
    evil = opened_library(tmp_path / "checkout" / NAME, "evil", soname=NAME)

    [loaded] = load_and_use(
        plugin(search_path), first_contact=first_contact, BEGINS_IN=tmp_path, used_in=evil.parent
    )

    assert loaded.outcome == ("loaded",)
    assert traces.names == ["init", "libx", "system"]


def test_a_library_of_ours_is_found_there_and_used_from_anywhere(
    plugin, load_and_use, traces, tmp_path
):
    ours = opened_library(tmp_path / "checkout" / NAME, "ours", soname=NAME)

    [loaded] = load_and_use(
        plugin(":"), first_contact="new", BEGINS_IN=ours.parent, used_in=tmp_path
    )

    assert loaded.outcome == ("loaded",)
    assert traces.names == ["init", "libx", "ours"]
