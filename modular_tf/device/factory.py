"""The interface of device factories, of C plugins and in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from modular_tf.errors import InternalError
from modular_tf.rules.device import DEVICE_COUNT_BOUNDED

if TYPE_CHECKING:
    from modular_tf.device.details import DeviceDetails

PLUGIN_PRIORITY = 220
"""Default of a plugin's factory, as in TensorFlow."""

HOST_CPU_PRIORITY = 60
"""Default of the bundled host CPU, TensorFlow's for its own."""

MAX_DEVICES = 4096
"""More devices of one platform than this are an uninitialised variable (rule SE-041)."""


@runtime_checkable
class DeviceFactory(Protocol):
    """A source of devices. Methods may be called from any thread, in parallel.

    A Python object that wants to serve needs `device_type`, `platform` and `device_count()`;
    `priority` is 220 when absent, and without `device_details` nothing is known about a device.
    It may return a mapping of the names in `DeviceDetails` instead of `DeviceDetails`.
    """

    @property
    def device_type(self) -> str:
        """The type of its devices, as `GPU`: letters, digits and _, starting with a letter.

        In capitals, as TensorFlow demands of C plugins, the same name works there too.
        """

    @property
    def platform(self) -> str:
        """The name of the platform, unique in a process; spelled like the device type."""

    @property
    def priority(self) -> int:
        """Among factories of one type, the highest serves."""

    def device_count(self) -> int:
        """Return how many devices there are now; asked at every listing."""

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return what is known about the device 0 <= `ordinal` < `device_count()`.

        Raises:
            ModularTFError: This device cannot be used; the others can.
        """


def checked_count(count: int, *, plugin: str, told_by: str = "get_device_count") -> int:
    """Return a valid device count: a negative one is 0, as in TensorFlow.

    Raises InternalError if the number is impossible (rule SE-041); it names the plugin, and the
    function or field that the count is from.
    """
    if count > MAX_DEVICES:
        raise InternalError(
            f"{told_by}: found {count}, expected at most {MAX_DEVICES} (plugin {plugin})",
            plugin=plugin,
            operation=told_by,
            rule=DEVICE_COUNT_BOUNDED,
        )
    return max(count, 0)
