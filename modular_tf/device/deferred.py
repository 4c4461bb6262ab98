"""A device factory whose library is loaded at the first use of one of its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.details import DeviceDetails


class DeferredFactory:
    """A placeholder in a registry for a platform that is not loaded yet. [any thread]

    The registry loads it before it asks anything of it (`DeviceRegistry.fulfil`). `load` replaces
    the placeholder by the platform, or raises a ModularTFError if the plugin does not do now what
    it did when it was tried.
    """

    __slots__ = ("device_type", "load", "platform", "plugin", "priority")

    def __init__(
        self,
        *,
        device_type: str,
        platform: str,
        priority: int,
        plugin: str,
        load_now: Callable[[], None],
    ) -> None:
        self.device_type = device_type
        self.platform = platform
        self.priority = priority
        self.plugin = plugin
        self.load = load_now

    def device_count(self) -> int:
        """Raise UnavailableError: the number of devices is unknown before loading."""
        raise self._not_loaded()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Raise UnavailableError: the devices are unknown before loading."""
        del ordinal
        raise self._not_loaded()

    def _not_loaded(self) -> UnavailableError:
        return UnavailableError(f"{self.plugin} is not loaded yet", plugin=self.plugin)
