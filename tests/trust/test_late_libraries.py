"""LD-098: what comes into the process with a frozen plugin beside what was judged.

Each library leaves a trace by its constructor, and the plugin one when it is initialised. Plugins
are mapped in a process of their own, twice, without having been tried before.
"""

import hashlib
from functools import partial

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.loading.binding import map_file
from modular_tf.loading.opened_libraries import unlocked_library
from tests.trust.opening import opened_library, opening_plugin, write_lock

SYSTEMS = "libanl.so.1"
# What an extension module leaves that is imported, and whether another thread runs.
FIRST = """
    import os, sys, threading, types
    os.environ.pop("LD_LIBRARY_PATH", None)  # the linker goes on with it
    sys.modules["imported"] = types.ModuleType("imported")
    sys.modules["imported"].__file__ = os.environ.get("IMPORTED", "")
    if "HAS_THREAD" in os.environ:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.fixture
def load_twice(load):
    """Load plugins in a new process, and again: what was refused stays mapped."""
    return partial(load, first=FIRST, times=2)


@pytest.fixture
def locked(tmp_path):
    """Write a lock file with a plugin and its companions, and return a policy that freezes."""
    return partial(write_lock, tmp_path / "plugins.lock")


@pytest.mark.parametrize(
    ("options", "opens"), [([], None), (["-Wl,--no-as-needed", "-lresolv"], None), ([], SYSTEMS)]
)
def test_what_brings_nothing_along_but_the_systems_libraries_is_loaded(
    options, opens, load_twice, tmp_path, locked, traces
):
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    variables = {"OPENS_IN_CONSTRUCTOR": opens, "OPENS_IN_INIT": opens} if opens else {}

    for policy in ({}, locked(plugin)):
        [loaded] = load_twice(plugin, policy=policy, **variables)
        assert (loaded.outcome, loaded.schemes) == (("loaded",), ["opening"])
    assert traces.names == ["init", "libx"]


def test_what_is_needed_must_be_locked_for_each_plugin(load_twice, tmp_path, traces):
    """LD_LIBRARY_PATH leads to it, of which the program does not know any more."""
    needed = opened_library(tmp_path / "elsewhere" / SYSTEMS, "needed", soname=SYSTEMS)
    options = ["-Wl,--no-as-needed", str(needed)]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    other = opening_plugin(tmp_path / "libother.so", "other", options)
    good = opening_plugin(tmp_path / "libgood.so", "good")
    lock = tmp_path / "plugins.lock"
    load_all = partial(load_twice, plugin, other, good, LD_LIBRARY_PATH=needed.parent)

    first, second, third = load_all(policy=write_lock(lock, plugin, others=(other, good)))
    assert (first.outcome, first.schemes) == (("rejected", "LD-080"), [])
    assert str(needed) in first.message
    assert hashlib.sha256(needed.read_bytes()).hexdigest() in first.message
    assert (second.outcome, third.outcome) == (("rejected", "LD-080"), ("loaded",))
    assert traces.names == ["init", "libgood"]

    accepted = write_lock(lock, plugin, needed, others=(good,))
    first, _, third = load_all(policy=accepted)
    assert first.outcome == third.outcome == ("loaded",)


# -- what its code opens ---------------------------------------------------------------------------

each_place_and_thread = pytest.mark.parametrize(
    ("place", "thread"), [("OPENS_IN_CONSTRUCTOR", {}), ("OPENS_IN_INIT", {"HAS_THREAD": 1})]
)


@pytest.fixture
def opening(tmp_path):
    """Return a plugin, and a library that its code may open."""
    opened = opened_library(tmp_path / "more" / "libmore.so", "more")
    return opening_plugin(tmp_path / "libx.so"), opened


@each_place_and_thread
def test_what_its_code_opens_is_locked_where_plugins_are_frozen_and_not_strangers(
    thread, place, opening, load_twice, locked, traces
):
    """Another thread excuses nothing: any plugin could start one."""
    plugin, opened = opening

    [refused] = load_twice(plugin, policy=locked(plugin), **thread, **{place: opened})
    assert (refused.outcome, refused.schemes) == (("failed", "LD-098"), [])
    assert f"{opened}, opened by its code, or by another thread" in refused.message
    assert hashlib.sha256(opened.read_bytes()).hexdigest() in refused.message
    assert ("init" in traces.names) == (place == "OPENS_IN_INIT")

    for policy in (locked(plugin, opened), {}):
        [loaded] = load_twice(plugin, policy=policy, **thread, **{place: opened})
        assert (loaded.outcome, loaded.schemes) == (("loaded",), ["opening"])

    opened.parent.chmod(0o777)
    [refused] = load_twice(plugin, policy=locked(plugin, opened), **thread, **{place: opened})
    assert refused.outcome == ("failed", "LD-098")
    assert f"{opened}, opened by its code, or by another thread, was mapped" in refused.message


@each_place_and_thread
def test_what_python_imports_meanwhile_is_not_the_plugins(
    thread, place, opening, load_twice, locked
):
    """A data loader's thread that imports numpy meanwhile is nobody's fault."""
    plugin, opened = opening
    variables = {"IMPORTED": opened, place: opened, **thread}

    assert load_twice(plugin, policy=locked(plugin), **variables)[0].outcome == ("loaded",)


def test_a_file_that_was_swapped_since_it_was_mapped_is_not_what_was_judged(
    tmp_path, traces, locked
):
    """The library that was mapped is gone, and a good one has its place."""
    needed = opened_library(tmp_path / "libfilter.so", "evil")
    options = ["-Wl,-f,libfilter.so", f"-Wl,-rpath,{tmp_path}"]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    checked = [see(str(plugin))]
    library = map_file(str(plugin), [], checked=checked)
    opened_library(tmp_path / "good.so", "good").replace(needed)

    refusal = unlocked_library(library, checked, TrustPolicy(**locked(plugin, needed)))

    assert refusal.rule == "LD-098"
    assert "is not the file that was mapped" in refusal.message
    assert "evil" in traces.names
