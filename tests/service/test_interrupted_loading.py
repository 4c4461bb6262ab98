"""What interrupts the loading of a plugin leaves it as it was: the next use begins anew.

An interrupt is a signal handler that raises or uses the package, a fork by another thread, or
another thread that asks for something else.
"""

from __future__ import annotations

import importlib
import threading

import pytest

from modular_tf.configuration import Config
from modular_tf.report import State
from modular_tf.scan_cache import ScanCache, cache
from modular_tf.service import PluginService

pytestmark = pytest.mark.usefixtures("home")

TRIED = Config(first_contact="new", load="lazy")
UNTRIED = Config(first_contact="never", load="lazy")
STEPS = [
    "modular_tf.loading.loader.map_file",
    "modular_tf.loading.loader.init_filesystems",
    "modular_tf.filesystem.opening.open_filesystem",
]
DEVICE_STEPS = [
    "modular_tf.loading.loader.map_file",
    "modular_tf.device.live_platform.read_device_tables",
    "modular_tf.device.platform.load_device_platform",
]


@pytest.fixture
def loaded():
    """Make services of one file each, and load them."""
    made = []

    def load(config, path):
        made.append(PluginService(config=config, plugin_paths=[path], bundled=False))
        made[-1].load()
        return made[-1]

    yield load
    for service in made:
        service.close()


@pytest.fixture(params=["before", "after"])
def at_step(request, monkeypatch):
    """Call a function once, right before or after another one is called."""

    def arrange(step, function):
        module, _, name = step.rpartition(".")
        real = getattr(importlib.import_module(module), name)
        left = [function]

        def called(*arguments, **named):
            if request.param == "before" and left:
                left.pop()()
            result = real(*arguments, **named)
            if left:
                left.pop()()
            return result

        monkeypatch.setattr(step, called)

    return arrange


def interrupt():
    raise KeyboardInterrupt


def remembered(path):
    """Return the schemes, or the device type, that later processes believe in."""
    offer = ScanCache.of_process().recall(str(path)).finding.offer
    return offer.schemes or offer.platform.device_type


@pytest.mark.parametrize("step", STEPS)
def test_the_next_use_opens_a_scheme(plugin_file, loaded, at_step, step):
    path = plugin_file("libcut.so")
    service = loaded(TRIED, path)
    at_step(step, interrupt)

    with pytest.raises(KeyboardInterrupt):
        service.filesystem("fixture")
    assert service.schemes() == {"fixture": "cut"}
    service.load()

    assert remembered(path) == ("fixture",)
    assert service.filesystem("fixture").plugin == "cut"
    (record,) = service.plugins()
    assert (record.state, record.schemes) == (State.LOADED, ("fixture",))
    assert record.reasons == record.warnings == ()


@pytest.mark.parametrize("step", DEVICE_STEPS)
def test_the_next_use_opens_devices(device_file, loaded, at_step, step):
    path = device_file("libcut_chip.so", device_type="CHIP", platform="CUT_CHIP")
    service = loaded(TRIED, path)
    at_step(step, interrupt)

    with pytest.raises(KeyboardInterrupt):
        service.devices("CHIP")
    service.load()

    assert remembered(path) == "CHIP"
    assert [device.name for device in service.devices("CHIP")] == ["CHIP:0", "CHIP:1"]
    assert service.device("CHIP:1").hardware_name == "Fixture 1000"


@pytest.mark.parametrize("step", STEPS)
def test_the_next_load_maps_a_plugin(plugin_file, loaded, at_step, step):
    path = plugin_file("libcut.so")
    service = PluginService(config=UNTRIED, plugin_paths=[path], bundled=False)
    at_step(step, interrupt)

    with service:
        with pytest.raises(KeyboardInterrupt):
            service.load()
        assert service.load()["cut"].state is State.LOADED
        assert service.filesystem("fixture").plugin == "cut"

    assert remembered(path) == ("fixture",)
    assert loaded(UNTRIED, path).schemes() == {"fixture": "cut"}


@pytest.mark.parametrize("step", STEPS)
def test_a_signal_handler_may_use_what_is_being_opened(plugin_file, loaded, at_step, step):
    service, seen = loaded(TRIED, plugin_file("libcut.so")), []
    at_step(step, lambda: seen.append(service.filesystem("fixture")))

    assert service.filesystem("fixture") is seen[0]
    seen[0].create_dir("fixture://host/folder")
    (record,) = service.plugins()
    assert record.reasons == record.warnings == ()


@pytest.mark.parametrize("step", STEPS)
def test_what_another_thread_is_opening_is_not_remembered_by_half(
    plugin_file, loaded, at_step, step
):
    path = plugin_file("libcut.so")
    service = loaded(TRIED, path)
    begun, may_end = threading.Event(), threading.Event()
    at_step(step, lambda: (begun.set(), may_end.wait(60)))
    opening = threading.Thread(target=service.filesystem, args=("fixture",))
    opening.start()
    begun.wait(60)

    service.load()
    assert remembered(path) == ("fixture",)
    may_end.set()
    opening.join()
    service.load()

    assert remembered(path) == ("fixture",)


def test_a_child_that_is_forked_while_another_thread_opens_opens_by_itself(run_python, plugin_file):
    run_python(
        """
        import os, sys, threading
        from modular_tf.configuration import Config
        from modular_tf.loading import loader
        from modular_tf.service import PluginService

        service = PluginService(config=Config(), plugin_paths=sys.argv[1:], bundled=False)
        service.load()
        begun, may_end, real = threading.Event(), threading.Event(), loader.init_filesystems

        def slow(*arguments, **named):
            loader.init_filesystems = real
            begun.set()
            may_end.wait(60)
            return real(*arguments, **named)

        loader.init_filesystems = slow
        opening = threading.Thread(target=service.filesystem, args=("fixture",))
        opening.start()
        begun.wait(60)
        pid = os.fork()
        if pid == 0:
            try:
                service.filesystem("fixture").create_dir("fixture://host/folder")
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        may_end.set()
        opening.join()
        service.filesystem("fixture").create_dir("fixture://host/folder")
        """,
        plugin_file("libcut.so"),
    )


def test_what_earlier_versions_remembered_is_not_believed(plugin_file, loaded, monkeypatch):
    path = plugin_file("libcut.so")
    with monkeypatch.context() as earlier:
        earlier.setattr(cache, "_TITLE", "modular_tf scan cache 1")
        loaded(TRIED, path)
        assert remembered(path) == ("fixture",)

    assert ScanCache.of_process().recall(str(path)) is None
