"""A platform that was found by its name, whether it serves its device type or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from modular_tf.device.ranking import FactoryState
from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.device import Device
    from modular_tf.device.ranking import FactoryStatus, Registration
    from modular_tf.rules import Violation


@final
class RegisteredPlatform:
    """One platform of a registry. [any thread]

    A platform that another one shadows works as well as one that serves: only lists of devices and
    device names leave it out.

    Attributes:
        name: The platform's name.
        device_type: The type of its devices.
        plugin: The name of the plugin that brought it.
        priority: Where it stands among the platforms of its type, as configured.
        state: Whether it served, was shadowed or was disabled when it was found.
        reason: Why it did not serve; None where it did.
    """

    def __init__(
        self, status: FactoryStatus, list_devices: Callable[[Registration], list[Device]]
    ) -> None:
        registration = status.registration
        self.name = registration.factory.platform
        self.device_type = registration.factory.device_type
        self.plugin = registration.plugin
        self.priority = registration.priority
        self.state: FactoryState = status.state
        self.reason: Violation | None = status.reason
        self._registration = registration
        self._list_devices = list_devices

    def devices(self) -> list[Device]:
        """Return all its devices, visible or not, in order of their ordinals.

        The library is loaded for it where that has not happened yet. A device of a shadowed
        platform has the name that it would have if the platform served; no lookup by that name
        returns it.

        Raises:
            FailedPreconditionError: Its device type is disabled (rule SE-053).
            ModularTFError: The plugin cannot be loaded, or cannot say what it has.
        """
        if self.state is FactoryState.DISABLED and self.reason is not None:
            raise self.reason.error(FailedPreconditionError, plugin=self.plugin)
        return self._list_devices(self._registration)

    def __repr__(self) -> str:
        return f"<RegisteredPlatform {self.name} of {self.device_type}, {self.state.value}>"
