"""Plugins that are known are registered unopened, and mapped when their offer is wanted."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from modular_tf.errors import ConfigError, PluginError, UnimplementedError
from modular_tf.service.configuration import Config, load_config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService

pytestmark = pytest.mark.usefixtures("home")

TRIED = Config(first_contact="new", load="lazy")
UNTRIED = Config(first_contact="never", load="lazy")


@pytest.fixture
def serve():
    """Open services, with this configuration, on these files alone."""
    opened = []

    def open_service(config, *paths):
        service = PluginService(config=config, plugin_paths=paths, bundled=False)
        opened.append(service)
        service.load()
        return service

    yield open_service
    for service in opened:
        service.close()


def is_mapped(path: Path) -> bool:
    """Tell whether a file, or a copy that is named after it, is mapped into this process."""
    return path.name.encode() in Path("/proc/self/maps").read_bytes()


# ---- What was just tried -------------------------------------------------------------------------


def test_a_plugin_that_was_tried_is_not_mapped_before_its_first_use(plugin_file, serve):
    path = plugin_file("libdeferred_one.so", scheme="deferred")
    service = serve(TRIED, path)
    (record,) = service.plugins()

    assert (record.state, record.schemes) == (State.LOADED, ("deferred",))
    assert service.schemes() == {"deferred": "deferred_one"}
    assert not is_mapped(path)
    assert service.entry("deferred_one").library is None

    filesystem = service.filesystem("deferred")
    assert (filesystem.scheme, filesystem.plugin) == ("deferred", "deferred_one")
    assert service.entry("deferred_one").library is not None
    assert service.filesystem_for("deferred://a/b") is filesystem
    assert service.plugins()[0].schemes == ("deferred",)
    assert service.plugins()[0].warnings == ()


def test_a_device_is_there_when_it_is_asked_for(device_file, serve):
    path = device_file("libdeferred_chip.so", device_type="CHIP", platform="CHIP_ONE")
    service = serve(TRIED, path)
    (record,) = service.plugins()

    assert (record.state, record.device_types) == (State.LOADED, ("CHIP",))
    assert not is_mapped(path)

    assert [device.name for device in service.devices("CHIP")] == ["CHIP:0", "CHIP:1"]
    assert service.device("CHIP:1").hardware_name == "Fixture 1000"
    assert service.entry("deferred_chip").platform is not None


def test_other_schemes_and_types_and_a_close_open_nothing(plugin_file, device_file, serve):
    chip = device_file("libother_chip.so", device_type="CHIP", platform="CHIP_ONE")
    path = plugin_file("libother_scheme.so", scheme="other")
    service = serve(TRIED, path, chip)

    with pytest.raises(UnimplementedError):
        service.filesystem("nobody")
    assert service.devices("GPU") == []
    service.close()
    assert not is_mapped(path)
    assert not is_mapped(chip)


def test_eager_plugins_and_named_ones_are_mapped_at_once(plugin_file, serve):
    service = serve(Config(first_contact="new", load="eager"), plugin_file("libeager.so"))
    assert service.entry("eager").library is not None

    service = serve(TRIED, plugin_file("libnamed.so"))
    assert service.entry("named").library is None
    service.load("named")
    assert service.entry("named").library is not None
    assert service.schemes() == {"fixture": "named"}


def test_the_first_of_two_has_the_scheme_as_ever(plugin_file, serve):
    service = serve(TRIED, plugin_file("a/libfirst.so"), plugin_file("b/libsecond.so"))

    states = {record.name: record.state for record in service.plugins()}
    assert states == {"first": State.LOADED, "second": State.SHADOWED}
    assert service.filesystem("fixture").plugin == "first"


def test_a_refused_plugin_is_told_without_being_mapped(fixture_plugin, tmp_path, serve):
    path = tmp_path / "librefused.so"
    shutil.copyfile(fixture_plugin("filesystem-size-0"), path)
    with PluginService(config=UNTRIED, plugin_paths=[path], bundled=False) as mapped:
        (as_mapped,) = mapped.load().plugins
    path = tmp_path / "librefused_too.so"
    shutil.copyfile(fixture_plugin("filesystem-size-0"), path)
    (record,) = serve(TRIED, path).plugins()

    assert (record.state, record.reasons) == (State.FAILED, as_mapped.reasons)
    assert record.reasons
    assert not is_mapped(path)


# ---- What is remembered --------------------------------------------------------------------------


@pytest.mark.parametrize("config", [TRIED, UNTRIED], ids=["tried", "mapped"])
def test_the_next_service_knows_it(plugin_file, serve, config, run_forked):
    path = plugin_file("libknown.so", scheme="known")
    serve(config, path)
    told = run_forked(
        "import sys\n"
        "from modular_tf.service.configuration import Config\n"
        "from modular_tf.service.service import PluginService\n"
        f"config = Config(first_contact={config.first_contact!r}, load='lazy')\n"
        "import modular_tf.first_contact.trials as trials; trials.try_plugins = None\n"
        "service = PluginService(config=config, plugin_paths=sys.argv[1:], bundled=False)\n"
        "(record,) = service.load().plugins\n"
        "print(record.state, *record.schemes, service.entry('known').library)\n"
        "print(service.filesystem('known').plugin)\n",
        str(path),
    )

    assert told.stdout == "loaded known None\nknown\n", told.stderr


def test_other_bytes_are_tried_again(plugin_file, serve, monkeypatch):
    path = plugin_file("libchanging.so", scheme="before")
    assert serve(TRIED, path).schemes() == {"before": "changing"}
    path.unlink()
    plugin_file("libchanging.so", scheme="after")

    assert serve(TRIED, path).schemes() == {"after": "changing"}


def test_a_memory_that_cannot_be_written_costs_nothing_but_time(plugin_file, serve, home):
    shutil.rmtree(home)
    home.write_text("no directory")
    path = plugin_file("libforgotten.so")

    assert serve(TRIED, path).schemes() == {"fixture": "forgotten"}
    assert serve(TRIED, path).schemes() == {"fixture": "forgotten"}


# ---- What is not as it was -----------------------------------------------------------------------


def test_a_scheme_that_is_gone_is_told(plugin_file, serve, monkeypatch):
    service = serve(TRIED, plugin_file("libdifferent.so", scheme="promised"))
    monkeypatch.setenv("FIXTURE_SCHEME_NOW", "found")

    with pytest.raises(UnimplementedError, match="promised"):
        service.filesystem("promised")
    (record,) = service.plugins()
    assert record.schemes == ("found",)
    assert [warning.rule for warning in record.warnings] == ["LD-095"]
    assert "scheme 'promised'" in record.warnings[0].message
    assert "scheme 'found'" in record.warnings[0].message
    assert service.filesystem("found").plugin == "different"


def test_a_file_that_was_exchanged_is_not_opened(plugin_file, serve, tmp_path):
    path = plugin_file("libexchanged.so", scheme="before")
    service = serve(TRIED, path)
    plugin_file("new/libother.so", scheme="another").replace(path)

    with pytest.raises(PluginError) as failure:
        service.filesystem("before")
    assert failure.value.rule == "LD-082"
    (record,) = service.plugins()
    assert (record.state, record.reason.rule) == (State.FAILED, "LD-082")
    with pytest.raises(UnimplementedError):
        service.filesystem("before")


def test_a_file_that_is_gone_is_told(plugin_file, serve):
    path = plugin_file("libgone.so")
    service = serve(TRIED, path)
    path.unlink()

    with pytest.raises(PluginError, match="No such file"):
        service.filesystem("fixture")
    assert service.plugins()[0].state is State.FAILED


# ---- Threads, forks, ends ------------------------------------------------------------------------


def test_threads_that_want_it_at_once_get_the_same(plugin_file, serve):
    service = serve(TRIED, plugin_file("libwanted.so"))
    found = []
    barrier = threading.Barrier(8)

    def want():
        barrier.wait()
        found.append(service.filesystem("fixture"))

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_forked_child_opens_for_itself(plugin_file, run_forked):
    told = run_forked(
        "import os, sys\n"
        "from modular_tf.service.configuration import Config\n"
        "from modular_tf.service.service import PluginService\n"
        "config = Config(first_contact='new', load='lazy')\n"
        "service = PluginService(config=config, plugin_paths=sys.argv[1:], bundled=False)\n"
        "service.load()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    print('child', service.filesystem('fixture').plugin, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print('parent', service.entry('forked').library, service.filesystem('fixture').plugin)\n"
        "service.close()\n",
        str(plugin_file("libforked.so")),
    )

    assert told.stdout == "child forked\nparent None forked\n", told.stderr


# ---- The policy ----------------------------------------------------------------------------------


def test_the_environment_says_when(tmp_path):
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert load_config(environment).load == "lazy"
    assert load_config({**environment, "MODULAR_TF_LOAD": "eager"}).load == "eager"
    with pytest.raises(ConfigError, match=r"MODULAR_TF_LOAD: expected one of .*'lazy', 'eager'"):
        load_config({**environment, "MODULAR_TF_LOAD": "soon"})
