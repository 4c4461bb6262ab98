"""Fixtures of the device tests."""

from __future__ import annotations

import gc
import time

import pytest

from modular_tf.device import platform as platforms
from modular_tf.device.device import Device
from modular_tf.service.service import PluginService
from tests.device.lifetimes import LifetimePlugin, await_ends, build_lifetime_plugin
from tests.device.recording import RecordingPlugin, build_recording_plugin
from tests.device.steering import SteeredPlugin, build_steered_plugin

_CHILD = """
import atexit, gc, os, sys, threading
last = []
atexit.register(lambda: [call() for call in last])  # runs when the package has ended
from tests.device.recording import LEAVES_OUTPUTS_ALONE, Callbacks, RecordingPlugin
from tests.device.steering import TABLES, SteeredPlugin
steered, recording = SteeredPlugin(sys.argv[1]), RecordingPlugin(sys.argv[2])
"""


@pytest.fixture(scope="session")
def steered_library():
    return build_steered_plugin()


@pytest.fixture
def steered(steered_library):
    """Return the steered plugin, not spoiled yet."""
    return SteeredPlugin(steered_library)


@pytest.fixture
def platform(steered):
    """Return the platform of the plugin as it is without spoiling."""
    with steered.load() as loaded:
        yield loaded


@pytest.fixture
def in_child(run_forked, steered_library, recording_library):
    """Run code that may crash, fork or exit in a child; return the lines that it prints.

    It has the plugins as `steered` and `recording`, and says nothing on stderr; what it adds to
    `last` is called in the very end.
    """

    def run(code):
        child = run_forked(_CHILD + code, steered_library, recording_library)
        assert child.stderr == ""
        return child.stdout.splitlines()

    return run


def device_of(platform, ordinal=0):
    """Return a device of a platform that no registry has."""
    names = {"plugin": platform.plugin, "priority": platform.priority}
    return Device(platform, ordinal=ordinal, index=ordinal, **names)


@pytest.fixture(scope="session")
def recording_library():
    return build_recording_plugin()


@pytest.fixture
def recording(recording_library):
    """Return the recording plugin, well-behaved and not loaded yet."""
    await_platforms()
    return RecordingPlugin(recording_library)


def await_platforms():
    """Wait for the end of platforms that host memory of a test before has kept."""
    if platforms._shared:
        gc.collect()
    await_ends()


@pytest.fixture(scope="session")
def lifetime_library():
    return build_lifetime_plugin()


@pytest.fixture
def lifetime(lifetime_library):
    """Return the lifetime plugin; in the end nothing was used too late, and nothing is left."""
    await_platforms()
    plugin = LifetimePlugin(lifetime_library)
    yield plugin
    await_platforms()
    end = time.monotonic() + 10
    while plugin.left and time.monotonic() < end:  # the thread of a callback may end a little later
        gc.collect()
        time.sleep(0.01)
    assert plugin.faults == []
    assert plugin.left == {}


@pytest.fixture
def device(recording):
    """Return the first device of the recording plugin."""
    with recording.devices() as [first, _]:
        yield first


@pytest.fixture
def host_device():
    """Return the bundled host device, whose streams are threads."""
    with PluginService() as service:
        service.load("host_device")
        yield service.device("CPU:0")


@pytest.fixture(scope="module")
def cpu():
    """Return the bundled host device, which the tests of a file share."""
    with PluginService() as service:
        service.load("host_device")
        yield service.device("CPU:0")
