"""The registry of device factories, and the devices that it makes visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.abi.dlpack_devices import DeviceType
from modular_tf.device.deferred import DeferredFactory
from modular_tf.device.dlpack_numbers import parse_dlpack_types
from modular_tf.device.names import parse_device_name
from modular_tf.device.ranking import FactoryState, FactoryStatus, Registration, rank
from modular_tf.device.visible import CPU, VisibleDevices
from modular_tf.errors import AlreadyExistsError, ClosedError, ModularTFError, NotFoundError
from modular_tf.events import EventLog
from modular_tf.fork_lock import ForkLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from modular_tf.device.device import Device
    from modular_tf.device.factory import DeviceFactory

_log = EventLog("device.registry")


class PhysicalDevice(NamedTuple):
    """A piece of hardware, visible or not, as `tf.config.list_physical_devices` shows it."""

    name: str
    device_type: str


class ListingProblem(NamedTuple):
    """A serving factory that could not be listed; the others were."""

    registration: Registration
    error: ModularTFError


class DeviceListing(NamedTuple):
    """One look at all devices.

    Attributes:
        devices: The visible ones, in the registry's order.
        problems: What could not be listed.
    """

    devices: tuple[Device, ...]
    problems: tuple[ListingProblem, ...]


class DeviceRegistry:
    """Device factories by type and platform. [any thread].

    Order of devices: CPU first, then types in the order in which their serving factory was
    registered, then as the visible devices say.
    """

    def __init__(
        self,
        *,
        priorities: Mapping[str, int] | None = None,
        enabled_types: frozenset[str] | None = None,
        visible: str | Iterable[str | int] | None = None,
        dlpack_types: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty registry.

        Args:
            priorities: From the configuration: `TYPE:PLATFORM` or `TYPE` to a priority; the
                first form wins. A factory that is not named keeps its own.
            enabled_types: The types that may serve; None for all (`parse_enabled_types`).
            visible: The visible devices, see `VisibleDevices`.
            dlpack_types: What device memory is said to be, by platform (`parse_dlpack_types`).

        Raises:
            InvalidArgumentError: `visible` is malformed or names a device twice.
            ConfigError: `dlpack_types` names what memory of a device cannot be.
        """
        self._priorities = dict(priorities or {})
        self._enabled_types = enabled_types
        self._visible = VisibleDevices.of(visible)
        self._dlpack_types = parse_dlpack_types(dlpack_types or {})
        self._lock = ForkLock()
        self._closed = False
        self._registrations: list[Registration] = []
        self._devices: dict[tuple[Registration, int, int], Device] = {}

    def register(self, factory: DeviceFactory, *, plugin: str) -> Callable[[], None]:
        """Add a factory; it serves at once unless another one ranks above it.

        Returns:
            A function that takes the factory out again; safe to call twice.

        Raises:
            AlreadyExistsError: Its platform's name is taken (rule SE-050).
            ClosedError: The registry is closed.
        """
        priority = self._priority_of(factory)
        registration = Registration(factory, plugin, priority)
        with self._lock:
            self._check_open()
            self._check_platform(factory, plugin)
            self._registrations.append(registration)
        _log.info(
            "device_factory.registered",
            plugin=plugin,
            device_type=factory.device_type,
            platform=factory.platform,
            priority=priority,
        )
        return lambda: self._remove(registration)

    def check_room(
        self, factory: DeviceFactory, *, plugin: str, instead_of: DeviceFactory | None
    ) -> None:
        """Check whether a factory could be registered in the place of another.

        Raises:
            AlreadyExistsError: Its platform's name is taken by a third one (rule SE-050).
        """
        with self._lock:
            replaced = [r for r in self._registrations if r.factory is instead_of]
            self._check_platform(factory, plugin, besides=replaced[0] if replaced else None)

    def fulfil(self, registered: DeviceFactory, factory: DeviceFactory) -> list[Device]:
        """Put a factory in the place of another of its plugin, or of what stands for it.

        Returns:
            The devices that were listed before; they stay with the factory that they came from.

        Raises:
            AlreadyExistsError: Its platform's name is taken (rule SE-050); nothing has changed.
            ClosedError: The registry is closed.
        """
        listed: list[Device] = []
        with self._lock:
            self._check_open()
            for registration in self._registrations:
                if registration.factory is registered:
                    self._check_platform(factory, registration.plugin, besides=registration)
                    registration.factory = factory
                    registration.priority = self._priority_of(factory)
                    listed += self._forget_devices(registration)
        return listed

    def close(self) -> None:
        """Take no factory any more; those that are there are not closed here."""
        with self._lock:
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the plugin service is closed")

    def _priority_of(self, factory: DeviceFactory) -> int:
        """Return what the configuration says, or the factory itself."""
        priority = self._priorities.get(factory.device_type, factory.priority)
        return self._priorities.get(f"{factory.device_type}:{factory.platform}", priority)

    def _check_platform(
        self, factory: DeviceFactory, plugin: str, *, besides: Registration | None = None
    ) -> None:
        name = factory.platform
        for taken in self._registrations:
            if taken is not besides and taken.factory.platform.upper() == name.upper():
                raise AlreadyExistsError(
                    f"platform {name} of {plugin} is registered already, by {taken.label}"
                    " (rule SE-050). Disable one of the two plugins.",
                    plugin=plugin,
                    rule="SE-050",
                )

    def _remove(self, registration: Registration) -> None:
        with self._lock:
            if registration in self._registrations:
                self._registrations.remove(registration)
            self._forget_devices(registration)

    def _forget_devices(self, registration: Registration) -> list[Device]:
        keys = [key for key in self._devices if key[0] is registration]
        return [self._devices.pop(key) for key in keys]

    def listed_devices(self, factory: DeviceFactory) -> list[Device]:
        """Return the devices of a registered factory that anybody has seen so far."""
        with self._lock:
            return [device for device in self._devices.values() if device.factory is factory]

    def factories(self) -> tuple[FactoryStatus, ...]:
        """Return what became of every factory, in order of registration."""
        with self._lock:
            return tuple(rank(self._registrations, self._enabled_types))

    def listing(
        self, device_type: str | None = None, *, load_deferred: bool = True
    ) -> DeviceListing:
        """Ask the serving factories for their counts; a failing one does not hide the others.

        Args:
            device_type: Only this type; None for all.
            load_deferred: Whether what is not loaded yet is loaded for it; else it is left out.

        Raises:
            InvalidArgumentError: A visible device does not exist.
        """
        devices: list[Device] = []
        problems: list[ListingProblem] = []
        for registration in self._serving(device_type):
            if isinstance(registration.factory, DeferredFactory) and not load_deferred:
                continue
            count = self._count(registration, problems)
            if count is not None:
                devices.extend(self._visible_devices(registration, count))
        return DeviceListing(tuple(devices), tuple(problems))

    def devices(self, device_type: str | None = None) -> list[Device]:
        """Return the visible devices; see `listing`, which also says what went wrong."""
        return list(self.listing(device_type).devices)

    def physical_devices(self, device_type: str | None = None) -> list[PhysicalDevice]:
        """Return all hardware of the serving factories, whether visible or not."""
        problems: list[ListingProblem] = []
        return [
            PhysicalDevice(f"/physical_device:{kind}:{ordinal}", kind)
            for registration in self._serving(device_type)
            for kind in [registration.factory.device_type]
            for ordinal in range(self._count(registration, problems) or 0)
        ]

    def device(self, name: str) -> Device:
        """Return the visible device of that name: TYPE:n, /device:TYPE:n, /physical_device:TYPE:n.

        Raises:
            InvalidArgumentError: `name` is malformed, or a visible device does not exist.
            NotFoundError: No visible device has that name.
            ModularTFError: The factory of that type cannot say what it has.
        """
        wanted = parse_device_name(name)
        listing = self.listing(wanted.device_type)
        for device in listing.devices:
            if wanted.number == (device.ordinal if wanted.physical else device.index):
                return device
        if listing.problems:
            raise listing.problems[0].error
        known = [device.name for device in self.devices()]
        raise NotFoundError(f"no device {name!r}; visible devices: {known}", path=name)

    def _serving(self, device_type: str | None) -> list[Registration]:
        """Return the serving factories, CPU first, else in order of registration."""
        serving = [
            status.registration
            for status in self.factories()
            if status.state is FactoryState.SERVING
            and device_type in {None, status.registration.factory.device_type}
        ]
        return sorted(serving, key=lambda entry: entry.factory.device_type != CPU)

    def _count(self, registration: Registration, problems: list[ListingProblem]) -> int | None:
        """Ask for a count; a failure is noted and gives None."""
        try:
            while isinstance(deferred := registration.factory, DeferredFactory):
                deferred.load()
                if registration.factory is deferred:
                    break
            return registration.factory.device_count()
        except ModularTFError as error:
            problems.append(ListingProblem(registration, error))
            _log.warning(
                "device_count.failed",
                plugin=registration.plugin,
                code=error.code.name,
                reason=error.message,
            )
            return None

    def _visible_devices(self, registration: Registration, count: int) -> Iterator[Device]:
        device_type = registration.factory.device_type
        for index, ordinal in enumerate(self._visible.ordinals(device_type, count)):
            with self._lock:
                device = self._device(registration, ordinal, index)
            yield device

    def _device(self, registration: Registration, ordinal: int, index: int) -> Device:
        """Return the one object for this device."""
        from modular_tf.device.device import Device  # noqa: PLC0415  (brings the native core)

        key = registration, ordinal, index
        if key not in self._devices:
            self._devices[key] = Device(
                registration.factory,
                ordinal=ordinal,
                index=index,
                plugin=registration.plugin,
                priority=registration.priority,
                dlpack_type=self._dlpack_types.get(
                    registration.factory.platform, DeviceType.EXT_DEV
                ),
            )
        return self._devices[key]
