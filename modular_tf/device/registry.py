"""The registry of device factories and their visible devices."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, final

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.factory import DeferredFactory
from modular_tf.device.names import CPU, LOCAL_PREFIX, VisibleDevices, parse_device_name
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.events import EventLog
from modular_tf.rules import Violation
from modular_tf.rules.device import (
    DEVICE_TYPE_ENABLED,
    HIGHEST_PRIORITY,
    PLATFORM_NAME_FREE,
    PRIORITIES_DIFFER,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from modular_tf.abi.dlpack_devices import DeviceType
    from modular_tf.device.device import Device, Operations
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
    """The result of listing all devices."""

    devices: tuple[Device, ...]  # the visible ones, in the registry's order
    problems: tuple[ListingProblem, ...]  # what could not be listed


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


class DeviceRegistry:
    """Device factories by type and platform. [any thread]

    Order of devices: CPU first, then types in the order in which their serving factory was
    registered, then as the visible devices say. `operations` makes operations on the devices; None
    where nothing does.
    """

    def __init__(
        self,
        *,
        priorities: Mapping[str, int] | None = None,
        enabled_types: frozenset[str] | None = None,
        visible: str | Iterable[str | int] | None = None,
        device_count: Mapping[str, int] | None = None,
        name_prefix: str = LOCAL_PREFIX,
        dlpack_types: Mapping[str, str] | None = None,
    ) -> None:
        """Create an empty registry.

        Args:
            priorities: From the configuration: `TYPE:PLATFORM` or `TYPE` to a priority; the
                first form wins. A factory that is not named keeps its own.
            enabled_types: The types that may serve; None for all (`parse_enabled_types`).
            visible: The visible devices, see `VisibleDevices`.
            device_count: The most visible devices of a type; of other types all are.
            name_prefix: What the full names of devices begin with.
            dlpack_types: What device memory is said to be, by platform (`parse_dlpack_types`).

        Raises:
            InvalidArgumentError: `visible` is malformed or names a device twice.
            ConfigError: `dlpack_types` names what memory of a device cannot be.
        """
        self._priorities = dict(priorities or {})
        self._enabled_types = enabled_types
        self._visible = VisibleDevices(visible, device_count)
        self._name_prefix = name_prefix
        self._dlpack_types: dict[str, DeviceType] = {}
        if dlpack_types:  # few name one; a device brings the module
            from modular_tf.device.arrays.dlpack_devices import parse_dlpack_types  # noqa: PLC0415

            self._dlpack_types = parse_dlpack_types(dlpack_types)
        self.operations: Operations | None = None
        self._lock = ForkLock()
        self._closed = False
        self._registrations: tuple[Registration, ...] = ()
        self._devices: dict[tuple[int, int, int], Device] = {}  # by id of the factory first

    def register(self, factory: DeviceFactory, *, plugin: str) -> Callable[[], None]:
        """Add a factory; it serves at once unless another one ranks above it.

        Returns a function that takes the factory out again; safe to call twice. Raises
        AlreadyExistsError if its platform's name is taken (rule SE-050), ClosedError if the
        registry is closed.
        """
        registration = self.registration_of(factory, plugin=plugin)
        self.enter(registration)
        return lambda: self.leave(registration)

    def registration_of(self, factory: DeviceFactory, *, plugin: str) -> Registration:
        """Return the registration of a factory, for `enter` and `leave`."""
        return Registration(factory, plugin, self._priority_of(factory))

    def enter(self, entering: Registration, *, instead_of: Registration | None = None) -> None:
        """Let a factory serve, unless another one ranks above it; a second call changes nothing.

        It takes the position of `instead_of` in the same step, where that is in force.

        Raises:
            AlreadyExistsError: Its platform's name is taken (rule SE-050).
            ClosedError: It was taken out before, or the registry is closed.
        """
        with self._lock:
            before = self._registrations
            if entering in before:
                return
            self._check_open(entering)
            self.check_free(entering, instead_of=instead_of)
            if instead_of is not None and instead_of in before:
                after = tuple(entering if r is instead_of else r for r in before)
            else:
                after = (*before, entering)
            self._registrations = after
        _log.info(
            "device_factory.registered",
            plugin=entering.plugin,
            device_type=entering.factory.device_type,
            platform=entering.factory.platform,
            priority=entering.priority,
        )

    def check_free(self, entering: Registration, *, instead_of: Registration | None) -> None:
        """Raise if a factory could not be registered, alone or instead of another.

        Raises AlreadyExistsError if its platform's name is taken by a third one (rule SE-050).
        """
        self._check_platform(entering.factory, entering.plugin, besides=instead_of)

    def fulfil(self, registration: Registration, factory: DeviceFactory) -> None:
        """Replace a registered factory by another one of its plugin.

        Errors as of `enter`; nothing has changed then.
        """
        priority = self._priority_of(factory)
        with self._lock:
            self._check_open(registration)
            self._check_platform(factory, registration.plugin, besides=registration)
            registration.factory = factory
            registration.priority = priority
        self._forget_devices()

    def leave(self, leaving: Registration) -> None:
        """Remove a factory; it cannot be entered again."""
        with self._lock:
            leaving.is_over = True
            self._registrations = tuple(r for r in self._registrations if r is not leaving)
        self._forget_devices()

    def close(self) -> None:
        """Refuse further factories; those that are registered are not closed here."""
        with self._lock:
            self._closed = True

    def _check_open(self, registration: Registration) -> None:
        if self._closed or registration.is_over:
            who = "the plugin service" if self._closed else registration.label
            raise ClosedError(f"{who} is closed", plugin=registration.plugin)

    def _priority_of(self, factory: DeviceFactory) -> int:
        """Return the configured priority, or the factory's own."""
        priority = self._priorities.get(factory.device_type, factory.priority)
        return self._priorities.get(f"{factory.device_type}:{factory.platform}", priority)

    def _check_platform(
        self, factory: DeviceFactory, plugin: str, *, besides: Registration | None = None
    ) -> None:
        name = factory.platform
        for taken in self._registrations:
            if taken is not besides and taken.factory.platform.upper() == name.upper():
                message = f"platform {name} of {plugin} is registered already, by {taken.label}"
                raise Violation(PLATFORM_NAME_FREE, message).error(
                    AlreadyExistsError, plugin=plugin, hint=". Disable one of the two plugins."
                )

    def _forget_devices(self) -> None:
        """Drop the devices of factories that are not registered any more."""
        with self._lock:
            serving = {id(registration.factory) for registration in self._registrations}
            for key, device in list(self._devices.items()):
                if id(device.factory) not in serving:
                    self._devices.pop(key, None)

    def listed_devices(self, factory: DeviceFactory) -> list[Device]:
        """Return the devices of a registered factory that were listed so far."""
        with self._lock:
            return [d for d in list(self._devices.values()) if d.factory is factory]

    def factories(self) -> tuple[FactoryStatus, ...]:
        """Return the status of every factory, in order of registration."""
        return tuple(rank(self._registrations, self._enabled_types))

    def listing(
        self, device_type: str | None = None, *, load_deferred: bool = True
    ) -> DeviceListing:
        """Return the devices of the serving factories; one that fails does not hide the others.

        What is not loaded yet is loaded for it, or left out without `load_deferred`. Raises
        InvalidArgumentError if a visible device does not exist.
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
        if not wanted.is_of_process(self._name_prefix):
            text = f"{name!r} is a device of another process than {self._name_prefix}"
            raise NotFoundError(f"{text}; each process has its own", path=name)
        listing = self.listing(wanted.device_type)
        for device in listing.devices:
            if wanted.number == (device.ordinal if wanted.physical else device.index):
                return device
        if listing.problems:
            raise listing.problems[0].error
        known = [device.name for device in self.devices()]
        raise NotFoundError(f"no device {name!r}; visible devices: {known}", path=name)

    def platform(self, name: str) -> RegisteredPlatform:
        """Return the platform of that name, in any case, whether it serves its type or not.

        Raises NotFoundError if no platform has that name.
        """
        statuses = self.factories()
        for status in statuses:
            if status.registration.factory.platform.upper() == name.upper():
                return RegisteredPlatform(status, self._all_devices)
        known = [status.registration.factory.platform for status in statuses]
        raise NotFoundError(f"no platform {name!r}; registered platforms: {known}", path=name)

    def _all_devices(self, registration: Registration) -> list[Device]:
        problems: list[ListingProblem] = []
        count = self._count(registration, problems)
        if problems:
            raise problems[0].error
        return [self._device(registration, ordinal, ordinal) for ordinal in range(count or 0)]

    def _serving(self, device_type: str | None) -> list[Registration]:
        """Return the serving factories, CPU first, else in order of registration."""
        serving = [
            status.registration
            for status in self.factories()
            if status.state is FactoryState.SERVING
            and (device_type is None or device_type == status.registration.factory.device_type)
        ]
        return sorted(serving, key=lambda entry: entry.factory.device_type != CPU)

    def _count(self, registration: Registration, problems: list[ListingProblem]) -> int | None:
        """Return a factory's count; None for a failure, which is recorded."""
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
            yield self._device(registration, ordinal, index)

    def _device(self, registration: Registration, ordinal: int, index: int) -> Device:
        """Return the one object for this device."""
        from modular_tf.abi.dlpack_devices import DeviceType  # noqa: PLC0415  (as the next)
        from modular_tf.device.device import Device  # noqa: PLC0415  (brings the native core)

        factory = registration.factory
        is_host = getattr(factory, "is_host_memory", False)
        own_type = DeviceType.CPU if is_host else DeviceType.EXT_DEV
        key = id(factory), ordinal, index
        device = self._devices.get(key)
        if device is None:
            made = Device(
                factory,
                ordinal=ordinal,
                index=index,
                plugin=registration.plugin,
                priority=registration.priority,
                dlpack_type=self._dlpack_types.get(factory.platform, own_type),
                name_prefix=self._name_prefix,
                operations=self.operations,
            )
            device = self._devices.setdefault(key, made)
        return device


# -- the ranking of factories: which one serves a device type, and why the others do not -----------


class FactoryState(Enum):
    """The state of a registered factory."""

    SERVING = "serving"
    SHADOWED = "shadowed"
    DISABLED = "disabled"


class Registration:
    """One registered device factory."""

    __slots__ = ("factory", "is_over", "plugin", "priority")

    def __init__(self, factory: DeviceFactory, plugin: str, priority: int) -> None:
        self.factory = factory  # what brings the devices; a deferred one until that is loaded
        self.plugin = plugin
        self.priority = priority  # as configured, else the factory's own
        self.is_over = False  # it was taken out, for good; set by the registry

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.plugin} (platform {self.factory.platform}, priority {self.priority})"


class FactoryStatus(NamedTuple):
    """The state of one registered factory, and the reason unless it serves."""

    registration: Registration
    state: FactoryState
    reason: Violation | None = None


def rank(
    registrations: Iterable[Registration], enabled_types: frozenset[str] | None
) -> list[FactoryStatus]:
    """Return the status of each factory, in the same order: whether it serves.

    For one type the highest priority serves; of equal ones the first, where TensorFlow aborts.
    Registrations are in order of their arrival; `enabled_types` may serve, None for all.
    """
    arrived = list(registrations)
    winners: dict[str, Registration] = {}
    for registration in arrived:
        best = winners.setdefault(registration.factory.device_type, registration)
        if registration.priority > best.priority:
            winners[registration.factory.device_type] = registration
    return [_status(entry, winners, enabled_types) for entry in arrived]


def _status(
    registration: Registration,
    winners: dict[str, Registration],
    enabled_types: frozenset[str] | None,
) -> FactoryStatus:
    device_type = registration.factory.device_type
    winner = winners[device_type]
    if enabled_types is not None and device_type not in enabled_types:
        found = ",".join(sorted(enabled_types))
        text = f"device type {device_type} is not among TF_ENABLED_DEVICE_TYPES={found}"
        return FactoryStatus(
            registration, FactoryState.DISABLED, Violation(DEVICE_TYPE_ENABLED, text)
        )
    if winner is registration:
        return FactoryStatus(registration, FactoryState.SERVING)
    tie = winner.priority == registration.priority
    relation = "was registered first" if tie else "has the higher priority"
    text = f"device type {device_type}: {winner.label} {relation}, not {registration.label}"
    reason = Violation(PRIORITIES_DIFFER if tie else HIGHEST_PRIORITY, text)
    return FactoryStatus(registration, FactoryState.SHADOWED, reason)
