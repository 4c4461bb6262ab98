"""Log handlers, hooks and Python objects are called while no lock of the package is held."""

from __future__ import annotations

import logging
import threading

import pytest

from modular_tf.concurrency import fork_lock
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.service.test_hooks import hooks

pytestmark = pytest.mark.usefixtures("home")


class Watchful:
    """Whatever is done with it, it notes who calls it with a lock."""

    def __init__(self):
        self.calls = set()
        self.wrong = set()

    def look(self, what):
        self.calls.add(what)
        if any(lock._is_owned() for lock in list(fork_lock._locks)):
            self.wrong.add(what)

    def hooks(self):
        """Return objects with all hooks."""

        def hook(name, answer=None):
            return hooks(f"modular_tf_{name}", lambda: (self.look(name), answer)[-1])

        def veto(candidate):
            self.look("veto")
            return "not this one" if candidate.name == "forbidden" else None

        return [
            hook("plugin_paths", []),
            hooks("modular_tf_veto", veto),
            hook("filesystems", {"hooked": Filesystem(self)}),
            hook("device_factories", [Factory(self, "HOOKED")]),
            hook("outcome"),
            hook("change"),
        ]


class Handler(logging.Handler):
    def __init__(self, watchful):
        super().__init__()
        self.watchful = watchful

    def emit(self, record):
        self.watchful.look(f"event {record.event['event']}")


class Filesystem:
    def __init__(self, watchful):
        self.watchful = watchful

    def __getattribute__(self, name):
        if name != "watchful" and not name.startswith("__"):
            self.watchful.look(f"attribute {name}")
        return super().__getattribute__(name)

    def path_exists(self, _uri):
        return True


class Factory:
    priority = 5

    def __init__(self, watchful, name):
        self.watchful = watchful
        self.name = name

    @property
    def device_type(self):
        self.watchful.look("device_type")
        return self.name

    @property
    def platform(self):
        self.watchful.look("platform")
        return f"{self.name}_PLATFORM"

    def device_count(self):
        self.watchful.look("device_count")
        return 1

    def device_details(self, _ordinal):
        self.watchful.look("device_details")
        return {"hardware_name": "none"}


@pytest.fixture
def watchful():
    """Hear every event, and take no lock for one's own that another test's service holds."""
    made, logger = Watchful(), logging.getLogger("modular_tf")
    handler, level = Handler(made), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield made
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_it_is_called_without_a_lock(watchful, plugin_file, device_file, tmp_path):
    plugin_file("plugins/libforbidden.so", scheme="forbidden")
    plugin_file("plugins/libfirst.so", scheme="first")
    plugin_file("plugins/libshadowed.so", scheme="first")
    plugin_file("plugins/libfailing.so", "init-fails", scheme="failing")
    plugin_file("plugins/libcrashing.so", "init-plugin-crashes")
    plugin_file("plugins/libbad.so", "no-init")
    device_file("plugins/libchip.so", device_type="CHIP", platform="WATCHED_CHIP")
    config = Config(first_contact="new", load="lazy")
    with PluginService(
        config=config, plugin_dirs=[tmp_path / "plugins"], hooks=watchful.hooks()
    ) as service:
        service.discover()
        report = service.load()
        service.filesystem("first")
        assert service.device("HOOKED:0").hardware_name == "none"
        assert service.devices("CHIP")
        undo = service.register_filesystem("mine", Filesystem(watchful))
        undo_devices = service.register_device_factory(Factory(watchful, "MINE"))
        assert service.device("MINE:0").hardware_name == "none"
        service.load("first")
        plugin_file("plugins/libfirst.so.new", scheme="second").replace(
            tmp_path / "plugins" / "libfirst.so"
        )
        plugin_file("plugins/libadded.so", scheme="added")
        (tmp_path / "plugins" / "libfailing.so").unlink()
        service.refresh()
        seen = threading.Event()
        with service.watch(lambda _: (watchful.look("on_change"), seen.set())):
            plugin_file("plugins/libwatched.so", scheme="watched")
            assert seen.wait(60)
        undo_devices()
        undo()

    assert {record.state for record in report.plugins} >= {
        State.LOADED, State.DISABLED, State.SHADOWED, State.FAILED, State.QUARANTINED,
        State.REJECTED,
    }  # fmt: skip
    assert watchful.calls >= {
        "plugin_paths", "veto", "filesystems", "device_factories", "outcome", "change", "on_change",
        "attribute path_exists", "device_type", "device_count", "device_details",
        "event plugin.decided", "event plugin.processed", "event scheme.registered",
        "event device_factory.registered", "event quarantine.added", "event plugin.replaced",
        "event plugin.removed",
    }  # fmt: skip
    assert watchful.wrong == set()
