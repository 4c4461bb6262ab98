"""A search path with an empty directory lets nobody's library in from the current directory.

The plugin needs a library that the system has; LD_LIBRARY_PATH stands for the system, since tests
install nothing there. Each library leaves a trace when its code begins to run.
"""

from __future__ import annotations

import json

import pytest

from tests.trust.opening import opened_library, opening_plugin

_LOAD = """
    import json, os, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    plugin, begins_in, is_used_in, first_contact = json.loads(sys.argv[1])
    config = Config(first_contact=first_contact, load="lazy")
    os.chdir(begins_in)
    with PluginService(config=config, plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins
        os.chdir(is_used_in)
        for scheme in record.schemes:
            service.filesystem(scheme).path_exists(f"{scheme}://host/x")
        (record,) = service.plugins()
        print(json.dumps([record.state.value, record.reason and [
            record.reason.rule, record.reason.message]]))
"""
SEARCH_PATHS = [":", "/nowhere:", ":/nowhere", "/nowhere::/nothing", ".", "./"]
NAME = "libneeded.so"


@pytest.fixture
def system(tmp_path):
    return opened_library(tmp_path / "system" / NAME, "system", soname=NAME)


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


@pytest.fixture
def plugin(system, tmp_path):
    """Build a plugin with a search path, which comes before the system's libraries."""

    def build(search_path):
        options = ["-Wl,--no-as-needed", str(system), "-Wl,--disable-new-dtags"]
        return opening_plugin(tmp_path / "libx.so", options=[*options, f"-Wl,-rpath,{search_path}"])

    return build


@pytest.fixture
def load(run_python, system, traces, monkeypatch):
    """Load a plugin in one current directory, and use it in another."""
    monkeypatch.delenv("MODULAR_TF_FIRST_CONTACT")

    def run(plugin, begins_in, is_used_in, first_contact="new"):
        given = json.dumps([str(plugin), str(begins_in), str(is_used_in), first_contact])
        env = {"TRACES": str(traces), "LD_LIBRARY_PATH": str(system.parent)}
        return json.loads(run_python(_LOAD, given, env=env).stdout)

    return run


def begun(traces):
    return sorted(entry.name for entry in traces.iterdir())


@pytest.mark.parametrize("search_path", SEARCH_PATHS)
def test_a_library_there_that_anybody_may_write_to_is_refused(
    search_path, plugin, load, traces, tmp_path
):
    evil = opened_library(tmp_path / "checkout" / NAME, "evil", soname=NAME)
    evil.chmod(0o666)

    state, [rule, message] = load(plugin(search_path), evil.parent, evil.parent)

    assert (state, rule) == ("rejected", "LD-076")
    assert f"{evil} has mode 0666" in message
    assert begun(traces) == []


@pytest.mark.parametrize("first_contact", ["new", "never"])
@pytest.mark.parametrize("search_path", SEARCH_PATHS)
def test_a_library_where_the_plugin_is_used_is_not_mapped(
    search_path, first_contact, plugin, load, traces, tmp_path
):
    """What is mapped is what was judged, wherever the program has gone since."""
    evil = opened_library(tmp_path / "checkout" / NAME, "evil", soname=NAME)

    state, reason = load(plugin(search_path), tmp_path, evil.parent, first_contact)

    assert (state, reason) == ("loaded", None)
    assert begun(traces) == ["init", "libx", "system"]


def test_a_library_of_ours_is_found_there_and_used_from_anywhere(plugin, load, traces, tmp_path):
    ours = opened_library(tmp_path / "checkout" / NAME, "ours", soname=NAME)

    state, reason = load(plugin(":"), ours.parent, tmp_path)

    assert (state, reason) == ("loaded", None)
    assert begun(traces) == ["init", "libx", "ours"]
