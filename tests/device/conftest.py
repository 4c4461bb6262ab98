"""Fixtures of the device tests."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.device import platform as platforms
from modular_tf.device.device import Device
from tests.device.lifetimes import LifetimePlugin, await_ends, build_lifetime_plugin
from tests.device.recording import RecordingPlugin, build_recording_plugin
from tests.device.steering import SteeredPlugin, build_steered_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.device.platform import DevicePlatform
    from tests.fixtures.children import PythonRunner

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def steered_library() -> Path:
    """Return the steered plugin's file."""
    return build_steered_plugin()


@pytest.fixture
def steered(steered_library: Path) -> SteeredPlugin:
    """Return the steered plugin, not spoiled yet."""
    return SteeredPlugin(steered_library)


@pytest.fixture
def platform(steered: SteeredPlugin) -> Iterator[DevicePlatform]:
    """Return the platform of the plugin as it is without spoiling."""
    with steered.load() as loaded:
        yield loaded


@pytest.fixture
def in_child(run_python: PythonRunner, steered_library: Path) -> Callable[..., str]:
    """Run code that may crash in a child; `steered` is the plugin there. Returns its output."""
    start = (
        "import sys; sys.path.append(sys.argv[2])\n"  # behind the installed package
        "from pathlib import Path\n"
        "from tests.device.steering import SteeredPlugin\n"
        "steered = SteeredPlugin(Path(sys.argv[1]))\n"
    )

    def run(code: str, *, status: int = 0) -> str:
        return run_python(start + code, steered_library, ROOT, status=status).stdout

    return run


def device_of(platform: DevicePlatform, ordinal: int = 0) -> Device:
    """Return a device of a platform that no registry has."""
    names = {"plugin": platform.plugin, "priority": platform.priority}
    return Device(platform, ordinal=ordinal, index=ordinal, **names)


@pytest.fixture(scope="session")
def recording_library() -> Path:
    """Return the recording plugin's file."""
    return build_recording_plugin()


@pytest.fixture
def recording(recording_library: Path) -> RecordingPlugin:
    """Return the recording plugin, well-behaved and not loaded yet."""
    await_platforms()
    return RecordingPlugin(recording_library)


def await_platforms() -> None:
    """Wait for the end of platforms that host memory of a test before has kept."""
    if platforms._shared:
        gc.collect()
    await_ends()


@pytest.fixture(scope="session")
def lifetime_library() -> Path:
    """Return the lifetime plugin's file."""
    return build_lifetime_plugin()


@pytest.fixture
def lifetime(lifetime_library: Path) -> Iterator[LifetimePlugin]:
    """Return the lifetime plugin; in the end nothing was used too late, and nothing is left."""
    await_platforms()
    plugin = LifetimePlugin(lifetime_library)
    yield plugin
    await_platforms()
    assert plugin.faults == []
    assert plugin.left == {}


@pytest.fixture
def device(recording: RecordingPlugin) -> Iterator[Device]:
    """Return the first device of the recording plugin."""
    with recording.devices() as [first, _]:
        yield first


@pytest.fixture
def host_device() -> Iterator[Device]:
    """Return the bundled host device, whose streams are threads."""
    from modular_tf.service.service import PluginService  # (most tests here do without a service)

    with PluginService() as service:
        service.discover()
        service.load("host_device")
        yield service.device("CPU:0")
