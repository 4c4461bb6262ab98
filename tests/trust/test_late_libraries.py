"""LD-098: what comes into the process with a frozen plugin beside what was judged.

Each library leaves a trace by its constructor, and the plugin one when it is initialised. Plugins
are mapped in a process of their own, without having been tried before.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.loading.binding import map_file
from modular_tf.loading.opened_libraries import unlocked_library
from tests.trust.opening import opened_library, opening_plugin, write_lock

_LOAD = """
    import json, os, sys, threading, types
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    os.environ.pop("LD_LIBRARY_PATH", None)  # the linker goes on with it
    policy, has_thread, imported, *plugins = json.loads(sys.argv[1])
    sys.modules["imported"] = types.ModuleType("imported")
    sys.modules["imported"].__file__ = imported  # as the import of an extension module leaves it
    config = Config(first_contact="never", load="eager", trust=TrustPolicy(**policy))
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    if has_thread:
        other.start()
    for _ in range(2):  # what was refused stays mapped
        with PluginService(config=config, plugin_paths=plugins, bundled=False) as service:
            records = service.load().plugins
    done.set()
    print(json.dumps([
        [p.state.value, list(p.schemes), [[r.rule, r.message] for r in (*p.reasons, *p.warnings)]]
        for p in records
    ]))
"""


SYSTEMS = "libanl.so.1"


@pytest.fixture
def traces(tmp_path):
    """Return a folder for traces."""
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


@pytest.fixture
def load(run_python, traces):
    """Load plugins in a new process, and again; return what became of each in the end."""

    def run(*plugins, policy=None, has_thread=False, imported="", **environment):
        given = json.dumps([policy or {}, has_thread, str(imported), *map(str, plugins)])
        env = {"TRACES": str(traces), **{key: str(value) for key, value in environment.items()}}
        return json.loads(run_python(_LOAD, given, env=env).stdout)

    return run


def names(traces):
    return sorted(entry.name for entry in traces.iterdir())


@pytest.fixture
def locked(tmp_path):
    """Write a lock file with a plugin and its companions, and return a policy that freezes."""
    return partial(write_lock, tmp_path / "plugins.lock")


def test_a_plugin_that_brings_nothing_along_is_loaded(load, tmp_path, locked, traces):
    plugin = opening_plugin(tmp_path / "libx.so")

    assert load(plugin) == [["loaded", ["opening"], []]]
    assert load(plugin, policy=locked(plugin)) == [["loaded", ["opening"], []]]
    assert names(traces) == ["init", "libx"]


def test_libraries_of_the_system_are_trusted_for_their_places(load, tmp_path, locked):
    plugin = opening_plugin(tmp_path / "libx.so", options=["-Wl,--no-as-needed", "-lresolv"])

    assert load(plugin) == [["loaded", ["opening"], []]]
    assert load(plugin, policy=locked(plugin)) == [["loaded", ["opening"], []]]
    assert load(plugin, OPENS_IN_CONSTRUCTOR="libanl.so.1", policy=locked(plugin)) == [
        ["loaded", ["opening"], []]
    ]


# -- what the linker finds elsewhere ---------------------------------------------------------------


@pytest.fixture
def needing(tmp_path):
    """Return a plugin that needs a library of the system's, and what the linker takes instead.

    LD_LIBRARY_PATH leads to it, of which the program does not know any more.
    """
    needed = opened_library(tmp_path / "elsewhere" / SYSTEMS, "needed", soname=SYSTEMS)
    options = ["-Wl,--no-as-needed", str(needed)]
    return opening_plugin(tmp_path / "libx.so", options=options), needed


def by_file(needed):
    needed.chmod(0o666)


def by_folder(needed):
    needed.parent.chmod(0o777)


@pytest.mark.parametrize("has_thread", [False, True], ids=["alone", "with a thread"])
@pytest.mark.parametrize("how", [by_file, by_folder])
def test_what_strangers_can_change_is_refused_before_the_plugin_begins(
    how, has_thread, needing, load, locked, traces
):
    plugin, needed = needing
    how(needed)
    policy = locked(plugin, needed)

    [[state, schemes, [[rule, message]]]] = load(
        plugin, policy=policy, has_thread=has_thread, LD_LIBRARY_PATH=needed.parent
    )

    assert (state, schemes, rule) == ("rejected", [], "LD-076")
    assert str(needed.parent) in message
    assert "so anybody may write to it" in message
    assert names(traces) == []


def test_what_is_not_locked_is_refused_where_plugins_are_frozen(needing, load, locked, traces):
    plugin, needed = needing

    [[state, schemes, [[rule, message]]]] = load(
        plugin, policy=locked(plugin), LD_LIBRARY_PATH=needed.parent
    )

    assert (state, schemes, rule) == ("rejected", [], "LD-080")
    assert str(needed) in message
    assert hashlib.sha256(needed.read_bytes()).hexdigest() in message
    assert names(traces) == []


def test_what_is_locked_is_accepted(needing, load, locked):
    plugin, needed = needing

    assert load(plugin, policy=locked(plugin, needed), LD_LIBRARY_PATH=needed.parent) == [
        ["loaded", ["opening"], []]
    ]


def test_the_next_plugin_that_needs_what_was_refused_is_refused_too(needing, load, tmp_path):
    plugin, needed = needing
    options = ["-Wl,--no-as-needed", str(needed)]
    other = opening_plugin(tmp_path / "libother.so", "other", options)
    good = opening_plugin(tmp_path / "libgood.so", "good")
    policy = write_lock(tmp_path / "plugins.lock", plugin, others=(other, good))

    outcomes = load(plugin, other, good, policy=policy, LD_LIBRARY_PATH=needed.parent)

    assert [state for state, _, _ in outcomes] == ["rejected", "rejected", "loaded"]
    assert [[rule for rule, _ in found] for _, _, found in outcomes] == [["LD-080"]] * 2 + [[]]


@pytest.mark.parametrize("tag", ["-f", "-F"], ids=["auxiliary", "filter"])
def test_a_library_that_filters_the_plugin_is_judged(tag, load, tmp_path, locked, traces):
    folder = tmp_path / "filters"
    filtering = opened_library(folder / SYSTEMS, "filtering", soname=SYSTEMS)
    plugin = opening_plugin(tmp_path / "libx.so", options=[f"-Wl,{tag},{SYSTEMS}"])

    [[state, _, [[rule, message]]]] = load(plugin, policy=locked(plugin), LD_LIBRARY_PATH=folder)
    assert (state, rule) == ("rejected", "LD-080")
    assert str(filtering) in message
    filtering.chmod(0o666)
    policy = locked(plugin, filtering)
    [[state, _, [[rule, message]]]] = load(plugin, policy=policy, LD_LIBRARY_PATH=folder)
    assert (state, rule) == ("rejected", "LD-076")
    assert "so anybody may write to it" in message
    assert names(traces) == []


# -- what its code opens ---------------------------------------------------------------------------

OPENS = pytest.mark.parametrize("place", ["OPENS_IN_CONSTRUCTOR", "OPENS_IN_INIT"])


@pytest.fixture
def opening(tmp_path):
    """Return a plugin, and a library that its code may open."""
    opened = opened_library(tmp_path / "more" / "libmore.so", "more")
    return opening_plugin(tmp_path / "libx.so"), opened


@pytest.mark.parametrize("has_thread", [False, True], ids=["alone", "with a thread"])
@pytest.mark.parametrize("how", [by_file, by_folder])
@OPENS
def test_what_its_code_opens_must_not_be_strangers(
    how, has_thread, place, opening, load, locked, traces
):
    plugin, opened = opening
    how(opened)
    policy = locked(plugin, opened)

    [[state, schemes, [[rule, message]]]] = load(
        plugin, policy=policy, has_thread=has_thread, **{place: opened}
    )

    assert (state, schemes, rule) == ("failed", [], "LD-098")
    assert f"{opened}, opened by its code, or by another thread, was mapped" in message
    assert ("init" in names(traces)) == (place == "OPENS_IN_INIT")


@OPENS
def test_what_its_code_opens_may_be_ours(place, opening, load):
    plugin, opened = opening

    assert load(plugin, **{place: opened}) == [["loaded", ["opening"], []]]


@OPENS
def test_what_its_code_opens_of_the_system_need_not_be_locked(place, opening, load, locked):
    plugin, _ = opening

    assert load(plugin, policy=locked(plugin), **{place: "libanl.so.1"}) == [
        ["loaded", ["opening"], []]
    ]


@OPENS
def test_what_its_code_opens_is_locked_where_plugins_are_frozen(
    place, opening, load, locked, traces
):
    plugin, opened = opening

    [[state, schemes, [[rule, message]]]] = load(plugin, policy=locked(plugin), **{place: opened})
    assert (state, schemes, rule) == ("failed", [], "LD-098")
    assert hashlib.sha256(opened.read_bytes()).hexdigest() in message
    assert ("init" in names(traces)) == (place == "OPENS_IN_INIT")

    assert load(plugin, policy=locked(plugin, opened), **{place: opened}) == [
        ["loaded", ["opening"], []]
    ]


@OPENS
@pytest.mark.parametrize("has_thread", [False, True], ids=["alone", "with a thread"])
def test_what_python_imports_meanwhile_is_not_the_plugins(has_thread, place, opening, load, locked):
    """A data loader's thread that imports numpy meanwhile is nobody's fault."""
    plugin, opened = opening

    assert load(
        plugin, policy=locked(plugin), has_thread=has_thread, imported=opened, **{place: opened}
    ) == [["loaded", ["opening"], []]]


def test_another_thread_does_not_excuse_what_is_not_locked(opening, load, locked):
    """Any plugin could start one, or wait until the application has."""
    plugin, opened = opening

    [[state, _, [[rule, message]]]] = load(
        plugin, policy=locked(plugin), has_thread=True, OPENS_IN_CONSTRUCTOR=opened
    )

    assert (state, rule) == ("failed", "LD-098")
    assert f"{opened}, opened by its code, or by another thread" in message


def test_threads_that_open_libraries_meanwhile_do_not_matter(run_python, tmp_path, locked):
    plugin = opening_plugin(tmp_path / "libx.so")
    others = [opened_library(tmp_path / "others" / f"lib{n}.so", f"o{n}") for n in range(200)]
    code = """
        import ctypes, json, sys, threading
        from modular_tf.service.configuration import Config
        from modular_tf.discovery.trust.policy import TrustPolicy
        from modular_tf.service.service import PluginService

        policy, plugin, *others = json.loads(sys.argv[1])
        config = Config(first_contact="never", load="eager", trust=TrustPolicy(**policy))
        begun = threading.Event()

        def open_all():
            for other in others:
                ctypes.CDLL(other)
                begun.set()

        thread = threading.Thread(target=open_all)
        thread.start()
        begun.wait()
        with PluginService(config=config, plugin_paths=[plugin], bundled=False) as service:
            (record,) = service.load().plugins
            print(record.state.value, {r.rule for r in (*record.reasons, *record.warnings)})
        thread.join()
    """
    frozen = locked(plugin)
    for policy, outcomes in (
        ({}, {"loaded set()\n"}),
        (frozen, {"loaded set()\n", "failed {'LD-098'}\n"}),  # whose it is cannot be told
    ):
        given = json.dumps([policy, str(plugin), *map(str, others)])

        assert run_python(code, given).stdout in outcomes


def test_a_file_that_was_swapped_since_it_was_mapped_is_not_what_was_judged(
    tmp_path, traces, monkeypatch, locked
):
    """The library that was mapped is gone, and a good one has its place."""
    needed = opened_library(tmp_path / "libfilter.so", "evil")
    options = ["-Wl,-f,libfilter.so", f"-Wl,-rpath,{tmp_path}"]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    monkeypatch.setenv("TRACES", str(traces))
    checked = [see(str(plugin))]
    library = map_file(str(plugin), [], checked=checked)
    opened_library(tmp_path / "good.so", "good").replace(needed)

    refusal = unlocked_library(library, checked, TrustPolicy(**locked(plugin, needed)))

    assert refusal.rule == "LD-098"
    assert "is not the file that was mapped" in refusal.message
    assert "evil" in names(traces)
