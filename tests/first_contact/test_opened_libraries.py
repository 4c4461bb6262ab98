"""What a plugin opens by itself when it is tried is part of what was found.

The plugin and each library leave a trace when their code begins to run, in whatever process.
"""

import hashlib
import json
import shutil

import pytest

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task
from modular_tf.service.storage.scan_cache import ScanCache
from tests.fixtures.compiler import compile_object, link_library
from tests.trust.opening import opened_library, opening_plugin

LIMITS = Limits(seconds=60)
CRASHING = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }\n"
GOOD = ["loaded", None, None]
PLACES = ["OPENS_IN_CONSTRUCTOR", "OPENS_IN_INIT"]


pytestmark = pytest.mark.usefixtures("traces")  # also those of the processes of trials


def begun(traces):
    """Return whose code began to run since the last look."""
    found = traces.names
    traces.clear()
    return found


@pytest.fixture
def plugin(tmp_path):
    return opening_plugin(tmp_path / "libx.so")


@pytest.fixture
def opened(tmp_path):
    return opened_library(tmp_path / "more" / "libmore.so", "more")


def tried(*plugins):
    tasks = [Task(path.stem, str(path), kinds=("filesystem",)) for path in plugins]
    return try_plugins(tasks, LIMITS)


_LOAD = """
    import json, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    plugin, load, policy = json.loads(sys.argv[1])
    config = Config(load=load, trust=TrustPolicy(**policy))
    with PluginService(plugin_paths=[plugin], bundled=False, config=config) as service:
        (record,) = service.load().plugins
        reason = record.reason
        maps = open("/proc/self/maps").read()
        print(json.dumps([record.state.value, reason and reason.rule, reason and reason.message,
                          "libmore.so" in maps]))
"""


@pytest.fixture
def load(run_forked):
    """Load a plugin in a new process; return its state, and rule and message of what was wrong."""

    def run_one(plugin, *, load="lazy", mapped=False, **policy):
        child = run_forked(_LOAD, json.dumps([str(plugin), load, policy]))
        *found, is_mapped = json.loads(child.stdout)
        assert is_mapped == mapped
        return found

    return run_one


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found_but_for_what_root_keeps_among_the_systems_libraries(
    place, plugin, opened, monkeypatch
):
    """Where all files of an image have one date, that would be read again at each start."""
    monkeypatch.setenv(place, str(opened))
    [finding] = tried(plugin)
    assert (finding.offer.schemes, finding.storable) == (("opening",), True)
    [seen] = finding.opened
    assert (seen.path, seen.identity.inode) == (str(opened), opened.stat().st_ino)

    monkeypatch.setenv(place, "libanl.so.1")
    [finding] = tried(plugin)
    assert (finding.opened, finding.storable) == ((), True)


# -- what is kept ----------------------------------------------------------------------------------


def test_a_plugin_is_tried_again_when_what_it_opened_has_changed(
    plugin, opened, traces, monkeypatch, tmp_path, load
):
    monkeypatch.setenv("OPENS_IN_INIT", str(opened))
    # What loading it finds takes the place of what was found when it was tried.
    assert load(plugin, load="eager", mapped=True) == GOOD
    begun(traces)
    assert load(plugin) == GOOD
    assert begun(traces) == [], "it is known"
    assert ScanCache.of_process().recall(str(plugin)).tried

    change(opened)
    known = ScanCache.of_process().recall(str(plugin))
    assert (known.tried, known.finding) == (False, None)
    opened.chmod(0o666)
    assert load(plugin)[:2] == ["rejected", "LD-098"]
    assert begun(traces) == [], "strangers can change it by now"

    source = tmp_path / "crash.c"
    source.write_text(CRASHING)
    shutil.copy(link_library("libcrash.so", [compile_object(source)]), opened)
    assert load(plugin)[:2] == ["quarantined", "LD-060"]


def change(library):
    """Give a library other bytes that mean the same."""
    with library.open("ab") as stream:
        stream.write(b"more")


def test_a_plugin_that_closes_what_it_opened_is_tried_each_time(
    plugin, opened, traces, monkeypatch, load
):
    monkeypatch.setenv("OPENS_IN_INIT", str(opened))
    monkeypatch.setenv("CLOSES", "1")
    [finding] = tried(plugin)
    assert not finding.storable

    for _ in range(2):
        begun(traces)
        assert load(plugin) == GOOD
        assert begun(traces) == ["init", "libx", "more"]


# -- trust -----------------------------------------------------------------------------------------


def test_what_strangers_can_change_is_not_opened_here(plugin, opened, traces, monkeypatch, load):
    monkeypatch.setenv("OPENS_IN_INIT", str(opened))
    opened.parent.chmod(0o777)

    state, rule, message = load(plugin, load="eager")

    assert (state, rule) == ("rejected", "LD-098")
    assert f"{opened}, which its code opens" in message
    begun(traces)
    assert load(plugin)[:2] == ["rejected", "LD-098"]
    assert begun(traces) == [], "it need not be tried again to be refused"


@pytest.fixture
def lock(plugin, tmp_path, run_forked):
    """Run `modular-tf lock` on the plugin; return the lock file."""
    code = "import sys; from modular_tf.cli.main import run; sys.exit(run(sys.argv[1:]))"
    path = tmp_path / "plugins.lock"

    def command(*words):
        run_forked(code, "lock", "--no-bundled", "--plugin", plugin, "--output", path, *words)
        return path

    return command


def test_where_plugins_are_frozen_it_is_in_the_lock_file_or_does_not_run(
    plugin, opened, traces, monkeypatch, load, lock
):
    monkeypatch.setenv("OPENS_IN_CONSTRUCTOR", str(opened))
    frozen = {"frozen": True, "lock": str(lock())}
    state, rule, message = load(plugin, **frozen)
    assert (state, rule) == ("rejected", "LD-098")
    assert hashlib.sha256(opened.read_bytes()).hexdigest() in message
    lock("--load")
    assert load(plugin, load="eager", mapped=True, **frozen) == GOOD

    begun(traces)
    locked = opened.read_bytes()
    change(opened)
    for found in (plugin, shutil.copy(plugin, plugin.with_name("libcopy.so"))):
        state, rule, message = load(found, load="eager", **frozen)
        assert (state, rule) == ("rejected", "LD-098")
        assert f"{opened}, which its code opens" in message
    assert begun(traces) == []
    opened.write_bytes(locked)
    assert load(plugin, **frozen) == GOOD
