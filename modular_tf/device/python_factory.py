"""A device factory written in Python, with checks of all that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modular_tf.abi.registered_names import DEVICE_NAME
from modular_tf.device.details import DeviceDetails
from modular_tf.device.factory import PLUGIN_PRIORITY, checked_count
from modular_tf.errors import InternalError, InvalidArgumentError, ModularTFError, NotFoundError
from modular_tf.rules import Rule, Violation
from modular_tf.rules.device import PYTHON_FACTORY_COMPLETE, PYTHON_FACTORY_RETURNS


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
        """Return the object's count.

        Raises InternalError if the object raised, or returned no number or too large a one (rule
        SE-055).
        """
        count = self._call("device_count")
        if not isinstance(count, int) or isinstance(count, bool):
            raise self._broken(f"device_count() returned {count!r}, expected a number")
        return checked_count(count, plugin=self.plugin)

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return the object's details, all unknown when it offers none.

        Raises:
            NotFoundError: There is no such ordinal.
            InternalError: It raised, or returned something else (rule SE-055).
        """
        details = self._details.get(ordinal)
        if details is None:  # without a lock, since the object is users' code
            details = self._details.setdefault(ordinal, self._ask_details(ordinal))
        return details

    def _ask_details(self, ordinal: int) -> DeviceDetails:
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
        if isinstance(details, Mapping):
            return self._read_mapping(details)
        raise self._broken(f"device_details({ordinal}) returned {details!r}, expected a mapping")

    def _read_mapping(self, details: Mapping[str, object]) -> DeviceDetails:
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
