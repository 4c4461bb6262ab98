"""What the library of one plugin has registered, until it gives that back."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.factory import DeferredFactory
from modular_tf.device.names import parse_enabled_types
from modular_tf.device.registry import DeviceRegistry
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    ModularTFError,
    NotFoundError,
    collected,
    unexpected,
)
from modular_tf.filesystem.registry import (
    DeferredFilesystem,
    FilesystemRegistry,
    SchemeRegistration,
)
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import (
    scheme_configured,
    scheme_pinned,
    scheme_reserved,
    scheme_taken,
)
from modular_tf.service.configured_filesystems import FsspecFallback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.device.registry import Registration
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.registry import KernelRegistry, PluginKernels
    from modular_tf.kernel.running import KernelRunner
    from modular_tf.kernel.variable import Variable
    from modular_tf.service.configuration import Config

    _Served: TypeAlias = PluginFilesystem | DeferredFilesystem


class ServiceOperations:
    """Operations by name, on any device of a service. [any thread]

    What it needs is imported at its first use: most services list plugins, and compute nothing.
    """

    def __init__(self, devices: DeviceRegistry) -> None:
        self._devices = devices
        self._runner: KernelRunner | None = None
        self._lock = ForkLock()
        self._closed = False
        self._promised: dict[object, Callable[[], None]] = {}

    @property
    def registry(self) -> KernelRegistry:
        """What plugins have registered, beside the standard definitions."""
        return self._running().registry

    def promise(self, owner: object, open_now: Callable[[], None]) -> None:
        """Have a library mapped at the first use of any operation."""
        self._promised[owner] = open_now

    def take_back(self, owner: object) -> None:
        """Forget a promise; does nothing where there is none."""
        self._promised.pop(owner, None)

    def open_promised(self) -> None:
        """Map the libraries that have kernels and are not mapped yet."""
        for open_now in list(self._promised.values()):
            open_now()

    def _running(self) -> KernelRunner:
        if self._runner is not None:
            return self._runner
        from modular_tf.kernel.registry import KernelRegistry  # noqa: PLC0415  (as the class says)
        from modular_tf.kernel.running import KernelRunner  # noqa: PLC0415
        from modular_tf.kernel.standard_ops import standard_ops  # noqa: PLC0415

        with self._lock:
            self._check_open()
            if self._runner is None:
                self._runner = KernelRunner(KernelRegistry(standard_ops))
        return self._runner

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the plugin service is closed")

    def op(self, name: str, label: str = "") -> Op:
        """Return an operation on the device of its inputs."""
        return self.on_device(None, name, label)

    def variable(self, device: Device, dtype: Any) -> Variable:
        """Return a new variable on a device, without a value."""
        from modular_tf.kernel.variable import Variable  # noqa: PLC0415  (as the class says)

        self._check_open()
        return Variable(self._running().site_of(device), dtype)

    def on_device(self, device: Device | None, name: str, label: str = "") -> Op:
        """Return an operation on a device, None for that of its inputs; raises as `op`."""
        from modular_tf.kernel.op import Op  # noqa: PLC0415  (as the class says)

        self._check_open()
        for what, text in (("name", name), ("label", label)):
            if not isinstance(text, str):
                raise unexpected(text, f"the {what} of an operation", "a text")
        self.open_promised()
        running = self._running()
        if self._closed:
            raise ClosedError("the plugin service is closed", operation=name)
        return running.cached_op(
            (name, device, label),
            lambda: Op(running, running.registry.definition(name), device, self._device_for, label),
        )

    def _device_for(self, op: str) -> Device:
        """Return the first device that an operation has kernels for."""
        from modular_tf.kernel.aliases import aliases_of  # noqa: PLC0415  (as the class says)
        from modular_tf.kernel.selection import device_types_of  # noqa: PLC0415
        from modular_tf.rules.kernel import KERNEL_MATCHES  # noqa: PLC0415

        names = (op, *(alias.own for alias in aliases_of(op)))
        types = {each.device_type for name in names for each in self.registry.kernels_of(name)}
        devices = self._devices.devices()
        for device in devices:
            served_by = device_types_of(device.device_type, is_pluggable=not device.is_host)
            if not types.isdisjoint(served_by):
                return device
        there = ", ".join(device.name for device in devices) or "none"
        have = ", ".join(sorted(types)) or "none"
        text = f"{op}: no visible device has a kernel of it; devices: {there}; types with kernels"
        raise Violation(KERNEL_MATCHES, f"{text}: {have}").error(NotFoundError, operation=op)

    def close(self) -> None:
        """End all kernel objects, and take out everything. Safe to call twice."""
        with self._lock:
            self._closed = True
            runner = self._runner
        if runner is not None:
            runner.close()
            runner.registry.close()


_OF_BUNDLED_PLUGINS = {"": "posix_filesystem", "file": "posix_filesystem", "ram": "ram_filesystem"}


class Registries(NamedTuple):
    """The registries of one service. [any thread]"""

    schemes: FilesystemRegistry
    fallback: FsspecFallback
    devices: DeviceRegistry
    operations: ServiceOperations

    @classmethod
    def of_process(cls, config: Config) -> Registries:
        """Return empty ones, by the user's decisions and the environment of this process."""
        devices = DeviceRegistry(
            priorities=config.priorities,
            enabled_types=parse_enabled_types(os.environ.get("TF_ENABLED_DEVICE_TYPES")),
            visible=config.visible_devices or None,
            device_count=config.device_count,
            name_prefix=config.name_prefix,
            dlpack_types=config.dlpack_types,
        )
        devices.operations = operations = ServiceOperations(devices)
        fallback = FsspecFallback(config)
        return cls(FilesystemRegistry(fallback.filesystem), fallback, devices, operations)


def reserved_schemes(config: Config) -> dict[str, str]:
    """Return the schemes that other plugins get only where a user gives them, by bundled plugins.

    Those of a bundled plugin that the configuration disables are free.
    """
    return {
        scheme: owner
        for scheme, owner in _OF_BUNDLED_PLUGINS.items()
        if config.why_disabled(owner) is None
    }


def why_pinned(
    scheme: str, plugin: str, config: Config, reserved: Mapping[str, str]
) -> Violation | None:
    """Return why the configuration, or a bundled plugin, has a scheme for somebody else."""
    if scheme in config.filesystems:
        return scheme_configured(scheme, plugin, where=config.origin)
    pinned = config.scheme_pins.get(scheme)
    if pinned is None and scheme in reserved:
        return scheme_reserved(scheme, plugin, reserved[scheme])
    if pinned is None or pinned == plugin:
        return None
    return scheme_pinned(scheme, plugin, pinned, where=config.origin)


class Registrations:
    """The schemes, the platform and the kernels of one plugin, in the registries of one service.

    What it registers may be deferred; the real one then replaces it when it is added. Each step can
    be done again, whatever failed before. Where it is to replace others (`replaced`), it serves
    nobody before `take_over`. Used by the library, under the library's lock.

    It gets the `reserved` schemes only where the configuration pins them to the plugin; otherwise
    the bundled plugins that stand beside them have these.
    """

    def __init__(
        self,
        plugin: str,
        config: Config,
        registries: Registries,
        reserved: Mapping[str, str],
        replaced: Registrations | None = None,
    ) -> None:
        self.plugin = plugin
        self.config = config
        self.registries = registries
        self.reserved = reserved
        self.scheme_places: dict[str, SchemeRegistration] = {}
        self.device_place: Registration | None = None
        self.kernel_place: PluginKernels | None = None
        self._replaced = replaced

    @classmethod
    def replacing(cls, old: Registrations) -> Registrations:
        """Return registrations that take the place of others."""
        return cls(old.plugin, old.config, old.registries, old.reserved, old)

    @property
    def filesystems(self) -> dict[str, _Served]:
        """What it registered, by scheme."""
        registered = list(self.scheme_places.items())
        return {scheme: cast("_Served", one.filesystem) for scheme, one in registered}

    @property
    def platform(self) -> DevicePlatform | DeferredFactory | None:
        """What it registered for its devices."""
        place = self.device_place
        return None if place is None else cast("DevicePlatform | DeferredFactory", place.factory)

    # -- schemes ----------------------------------------------------------------------------------

    def conflict_of(self, scheme: str) -> Violation | None:
        """Return why it cannot have a scheme: who else has it, or is to have it."""
        if self._replaced is None and scheme in self.scheme_places:
            return None
        pinned = why_pinned(scheme, self.plugin, self.config, self.reserved)
        if pinned is not None:
            return pinned
        owner = self.registries.schemes.serving.get(scheme)
        if owner is None or (self._replaced and scheme in self._replaced.scheme_places):
            return None
        return scheme_taken(scheme, self.plugin, owner.plugin)

    def add_filesystem(self, filesystem: _Served) -> Violation | None:
        """Register a filesystem for its scheme; one that cannot be registered is closed.

        It takes the place of a deferred one, and none is taken by a deferred one.
        """
        scheme = filesystem.scheme
        if (why := self.conflict_of(scheme)) is not None:
            self.give_up(filesystem)
            return why
        try:
            made = SchemeRegistration(self.registries.schemes, filesystem)
            place = self.scheme_places.setdefault(scheme, made)
            if not isinstance(filesystem, DeferredFilesystem):
                place.fulfil(filesystem)
            self.enter_scheme(place)
        except ModularTFError as error:
            self.give_up(filesystem)
            return replace(Violation.of_error(error), scheme=scheme)
        return None

    def enter_scheme(self, place: SchemeRegistration) -> None:
        """Let a filesystem serve its scheme; raises as `SchemeRegistration.enter`."""
        if self._replaced is None:
            place.enter()

    def give_up(self, filesystem: _Served) -> None:
        """Release a filesystem that does not serve, and close it."""
        self.scheme_places.pop(filesystem.scheme, None)
        if not isinstance(filesystem, DeferredFilesystem):
            close_served([filesystem], None, [], at_exit=False)

    # -- devices ----------------------------------------------------------------------------------

    def add_platform(self, platform: DevicePlatform | DeferredFactory) -> None:
        """Register a platform; one that cannot be registered is closed.

        It takes the place of a deferred one, and none is taken by a deferred one.
        """
        devices = self.registries.devices
        made = devices.registration_of(platform, plugin=self.plugin)
        place = self.device_place = self.device_place or made
        try:
            if not (place.factory is platform or isinstance(platform, DeferredFactory)):
                devices.fulfil(place, platform)
            if self._replaced is None:
                devices.enter(place)
            else:
                devices.check_free(place, instead_of=self._replaced.device_place)
        except ModularTFError:
            self._give_devices_back()
            if not isinstance(platform, DeferredFactory):
                platform.close()
            raise

    def _give_devices_back(self) -> None:
        if self.device_place is not None:
            self.registries.devices.leave(self.device_place)
        self.device_place = None

    # -- kernels ----------------------------------------------------------------------------------

    def add_kernels(self, kernels: PluginKernels) -> tuple[Violation, ...]:
        """Register kernels and definitions of operations; return what is wrong with single ones."""
        place = self.kernel_place = self.kernel_place or kernels
        registry = self.registries.operations.registry
        if self._replaced is None:
            return registry.enter(place)
        return registry.judge(place, instead_of=self._replaced.kernel_place)

    def promise_kernels(self, open_now: Callable[[], None]) -> None:
        """Have kernels registered, by a call, at the first use of any."""
        self.registries.operations.promise(self, open_now)

    # -- taking the place of others ---------------------------------------------------------------

    def give_up_conflicts(self) -> list[Violation]:
        """Close what others have registered meanwhile instead of this; return the reasons."""
        if self._replaced is None:
            return []
        given_up = []
        for scheme, filesystem in self.filesystems.items():
            if (why := self.conflict_of(scheme)) is not None:
                self.give_up(filesystem)
                given_up.append(why.at("register"))
        if (platform := self.platform) is not None:
            try:
                self.add_platform(platform)
            except ModularTFError as error:
                given_up.append(Violation.of_error(error, "register"))
        return given_up

    def take_over(self) -> None:
        """Serve what the others serve, in one step, and what they did not; they serve no longer.

        What somebody else has was given up before; what they got since is theirs. Can be repeated.
        """
        old = self._replaced
        if old is None:
            return
        for scheme, place in list(self.scheme_places.items()):
            with suppress(AlreadyExistsError):
                place.enter(instead_of=old.scheme_places.get(scheme))
        if self.device_place is not None:
            with suppress(AlreadyExistsError):
                self.registries.devices.enter(self.device_place, instead_of=old.device_place)
        if self.kernel_place is not None:
            operations = self.registries.operations.registry
            operations.enter(self.kernel_place, instead_of=old.kernel_place)
        old.withdraw()
        self._replaced = None

    # -- the end ----------------------------------------------------------------------------------

    def give_back_deferred(self) -> None:
        """Give back what was registered before the library was mapped, and is not there."""
        for scheme, place in list(self.scheme_places.items()):
            if isinstance(place.filesystem, DeferredFilesystem):
                place.undo()
                self.scheme_places.pop(scheme, None)
        if isinstance(self.platform, DeferredFactory):
            self._give_devices_back()
        self.registries.operations.take_back(self)

    def withdraw(self) -> None:
        """Give everything back; what is open goes on. [any thread]"""
        for place in reversed(list(self.scheme_places.values())):
            place.undo()
        if self.device_place is not None:
            self.registries.devices.leave(self.device_place)
        self.registries.operations.take_back(self)
        if self.kernel_place is not None:
            self.registries.operations.registry.leave(self.kernel_place)

    def forget(self) -> None:
        """Give everything back, and drop it. [any thread]"""
        self.withdraw()
        self.scheme_places.clear()
        self.device_place = None
        self.kernel_place = None

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Give everything back, and close it; add what went wrong to `failures`. [any thread]"""
        self.withdraw()
        close_served(self.opened_filesystems, self.loaded_platform, failures, at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in self.opened_filesystems:
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()
        if self.loaded_platform is not None:
            self.loaded_platform.after_fork_in_child()

    @property
    def opened_filesystems(self) -> list[PluginFilesystem]:
        """The filesystems that are open."""
        served = [place.filesystem for place in list(self.scheme_places.values())]
        opened = [f for f in served if not isinstance(f, DeferredFilesystem)]
        return cast("list[PluginFilesystem]", opened)

    @property
    def loaded_platform(self) -> DevicePlatform | None:
        """The platform, None where it is not loaded."""
        platform = self.platform
        return None if isinstance(platform, DeferredFactory) else platform

    @property
    def lent_devices(self) -> list[Device]:
        """The devices that anybody has seen so far."""
        platform = self.loaded_platform
        return [] if platform is None else self.registries.devices.listed_devices(platform)


def close_served(
    filesystems: Iterable[PluginFilesystem],
    platform: DevicePlatform | None,
    failures: list[ModularTFError],
    *,
    at_exit: bool,
) -> None:
    """Close what a library serves, but for a platform at exit; what is closed stays so."""
    for filesystem in filesystems:
        with collected(failures):
            filesystem.close(at_exit=at_exit)
    if platform is not None and not at_exit:
        with collected(failures):
            platform.close()
