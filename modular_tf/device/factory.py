"""Device factories: their interface, and those that are written in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from modular_tf.abi.registered_names import DEVICE_NAME
from modular_tf.device.details import DeviceDetails
from modular_tf.errors import (
    InternalError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    UnavailableError,
)
from modular_tf.rules import Rule, Violation
from modular_tf.rules.device import (
    DEVICE_COUNT_BOUNDED,
    PYTHON_FACTORY_COMPLETE,
    PYTHON_FACTORY_RETURNS,
)

if TYPE_CHECKING:
    from collections.abc import Callable


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


def checked_count(count: int, *, plugin: str, reported_by: str = "get_device_count") -> int:
    """Return a valid device count: a negative one is 0, as in TensorFlow.

    Raises InternalError if the number is impossible (rule SE-041); it names the plugin, and the
    function or field that the count is from.
    """
    if count > MAX_DEVICES:
        raise InternalError(
            f"{reported_by}: found {count}, expected at most {MAX_DEVICES} (plugin {plugin})",
            plugin=plugin,
            operation=reported_by,
            rule=DEVICE_COUNT_BOUNDED,
        )
    return max(count, 0)


class PythonDeviceFactory:
    """Wraps an object that has some or all of `DeviceFactory`. [any thread]

    The names and the priority are read once. The details of an ordinal are asked for until there
    are some, which are kept.
    """

    def __init__(self, factory: object, *, plugin: str) -> None:
        """Check the object's attributes; none of its methods is called.

        Raises InvalidArgumentError if one is missing or wrong (rule SE-054).
        """
        self.plugin = plugin
        self.wrapped = factory
        self.device_type = self._name("device_type")
        self.platform = self._name("platform")
        self.priority = self._priority()
        if not callable(self._attribute("device_count")):
            raise self._refusal("device_count is missing or no method")
        self._details: dict[int, DeviceDetails] = {}

    def device_count(self) -> int:
        """Return the object's count; InternalError if it raised, or for no number (rule SE-055)."""
        count = self._call("device_count")
        if not isinstance(count, int) or isinstance(count, bool):
            raise self._broken(f"device_count() returned {count!r}, expected a number")
        return checked_count(count, plugin=self.plugin)

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return the object's details, all unknown when it offers none.

        Raises InternalError if it raised, or returned something else (rule SE-055).
        """
        details = self._details.get(ordinal)
        if details is None:  # without a lock, since the object is users' code
            details = self._details.setdefault(ordinal, self._details_of(ordinal))
        return details

    def _details_of(self, ordinal: int) -> DeviceDetails:
        count = self.device_count()
        if not 0 <= ordinal < count:
            raise NotFoundError(
                f"{self.device_type}:{ordinal}: the platform has {count} devices",
                plugin=self.plugin,
            )
        if self._attribute("device_details") is None:
            return DeviceDetails()
        details = self._call("device_details", ordinal)
        if isinstance(details, DeviceDetails):
            return details
        if not isinstance(details, Mapping):
            raise self._broken(
                f"device_details({ordinal}) returned {details!r}, expected a mapping"
            )
        try:
            return DeviceDetails.from_mapping(details)
        except InternalError as error:
            raise self._broken(error.message) from None

    def _call(self, method: str, *arguments: object) -> Any:
        """Call a method; its own errors pass, any other exception becomes an `InternalError`."""
        try:
            return getattr(self.wrapped, method)(*arguments)
        except ModularTFError:
            raise
        except Exception as error:
            raise self._broken(f"{method}() raised {type(error).__name__}: {error}") from error

    def _attribute(self, name: str) -> Any:
        """Return an attribute, None if it is absent; a user's property may raise anything."""
        try:
            return getattr(self.wrapped, name, None)
        except Exception as error:
            raise self._refusal(f"{name} raised {type(error).__name__}: {error}") from error

    def _name(self, attribute: str) -> str:
        value = self._attribute(attribute)
        if not isinstance(value, str) or not DEVICE_NAME.fullmatch(value):
            raise self._refusal(f"{attribute} is {value!r}, expected {DEVICE_NAME.pattern}")
        return value

    def _priority(self) -> int:
        value = self._attribute("priority")
        if value is None:
            return PLUGIN_PRIORITY
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._refusal(f"priority is {value!r}, expected a whole number")
        return value

    def _refusal(self, problem: str) -> InvalidArgumentError:
        found = self._violation(PYTHON_FACTORY_COMPLETE, problem)
        return found.error(InvalidArgumentError, plugin=self.plugin)

    def _broken(self, problem: str) -> InternalError:
        found = self._violation(PYTHON_FACTORY_RETURNS, problem)
        return found.error(InternalError, plugin=self.plugin)

    def _violation(self, broken: Rule, problem: str) -> Violation:
        factory = type(self.wrapped).__name__
        return Violation(broken, f"device factory {factory} of {self.plugin}: {problem}")


@dataclass(eq=False)
class DeferredFactory:
    """A factory whose library is loaded at the first use of one of its devices. [any thread]

    The registry calls `load` before all else, which replaces this by the platform
    (`DeviceRegistry.fulfil`), or raises a ModularTFError if the plugin does not do now what it did
    when it was tried.
    """

    device_type: str
    platform: str
    priority: int
    plugin: str
    load: Callable[[], None]

    def device_count(self) -> int:
        """Raise UnavailableError: the number of devices is unknown before loading."""
        raise self._not_loaded()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Raise UnavailableError: the devices are unknown before loading."""
        del ordinal
        raise self._not_loaded()

    def _not_loaded(self) -> UnavailableError:
        return UnavailableError(f"{self.plugin} is not loaded yet", plugin=self.plugin)
