"""What a service serves, by name: filesystems, devices, kernels and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.discovery.kinds import Kind
from modular_tf.errors import (
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
    unexpected,
)
from modular_tf.events.delivery import delivers_at_end
from modular_tf.filesystem.registry import DeferredFilesystem
from modular_tf.filesystem.scheme import scheme_of
from modular_tf.loading.known_packages import package_for
from modular_tf.service.configured_filesystems import foreseen_problem
from modular_tf.service.fsspec_clients import commands_for
from modular_tf.service.instances import shared_name
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.device.device import Device
    from modular_tf.device.registered_platform import RegisteredPlatform
    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.isolation.worker import WorkerRecord
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.service.configuration import Config
    from modular_tf.service.instances import Instances
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.registries import Registries

_KEPT_OUT = frozenset((State.QUARANTINED, State.REJECTED, State.FAILED, State.DISABLED))


class Served:
    """The part of a service that looks up what is registered. [any thread]"""

    config: Config
    _lock: ServiceLock
    _registries: Registries
    _known: KnownPlugins
    _instances: Instances

    # -- filesystems and devices ----------------------------------------------------------------

    def schemes(self) -> dict[str, str]:
        """Return the name of who serves each scheme, sorted by scheme.

        That is a plugin, an object of Python, or, as `fsspec.SCHEME`, what the configuration names
        or fsspec has for a scheme that nobody else serves (`fallback_schemes`).
        """
        serving = {s: fs.plugin for s, fs in self._registries.schemes.serving.items()}
        return dict(sorted({**self._fallback_owners(), **serving}.items()))

    def _fallback_owners(self) -> dict[str, str]:
        return {} if self._lock.closed else self._registries.fallback.owners()

    def fallback_schemes(self) -> dict[str, str]:
        """Return the schemes that fsspec's clients serve, since nobody else does.

        Returns:
            Who serves it and why, by scheme, each one sentence without a full stop.
        """
        others = self._fallback_owners().keys() - self._registries.schemes.serving.keys()
        return {scheme: self.fallback_sentence(scheme) for scheme in sorted(others)}

    def fallback_sentence(self, scheme: str) -> str:
        """Return which client of fsspec serves a scheme, and why."""
        return self._registries.fallback.sentence(scheme)

    def owner(self, scheme: str) -> str | None:
        """Return the name of who serves a scheme, as `schemes`; None for nobody."""
        serving = self._registries.schemes.serving.get(scheme)
        if serving is not None:
            return serving.plugin
        return None if self._lock.closed else self._registries.fallback.owner(scheme)

    def is_fallback(self, scheme: str) -> bool:
        """Return whether fsspec's client serves a scheme, since nobody else does."""
        return scheme not in self._registries.schemes.serving and self.owner(scheme) is not None

    def foreseen_problem(self, scheme: str) -> tuple[str, str]:
        """Return why what the configuration names for a scheme cannot be made, and what to do.

        Nothing is imported for it but fsspec. ("", "") where nothing is foreseen.
        """
        serving = self._registries.schemes.serving.get(scheme)
        is_made = not isinstance(serving, DeferredFilesystem)
        configured = None if is_made else self.config.filesystems.get(scheme)
        return ("", "") if configured is None else foreseen_problem(configured)

    def next_step(self, scheme: str) -> str:
        """Return how to have a scheme served that nobody serves; "" where that is not known."""
        fallback, package = self._registries.fallback, package_for(scheme)
        has_plugin = package is not None and any(
            entry.plugin.candidate.distribution == package.name for entry in self._known
        )
        commands = commands_for(scheme, has_plugin=has_plugin)
        if not commands:
            return ""
        step = "to have it: " + " or ".join(f"`{command}`" for command in commands)
        if pinned := self.config.scheme_pins.get(scheme):
            return f"{step}; `scheme_pins` in {self.config.origin} gives it to {pinned!r} alone"
        off = f'; fsspec\'s client also needs {scheme} = "fsspec" in [filesystems], since '
        return step + off + fallback.why_off if fallback.why_off else step

    def devices(self, device_type: str | None = None) -> list[Device]:
        """Return the visible devices, of one type or all."""
        self._lock.check_open()
        return self._registries.devices.devices(device_type)

    @property
    def device_registry(self) -> DeviceRegistry:
        """Every factory and what became of it."""
        return self._registries.devices

    def device(self, name: str) -> Device:
        """Return the device of that name, in any of TensorFlow's forms.

        Raises:
            NotFoundError: No visible device has it; the message names the device plugins that are
                not loaded, such as those in quarantine.
            InvalidArgumentError: It is no device name.
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        try:
            return self._registries.devices.device(name)
        except NotFoundError as error:
            if not (kept_out := self._kept_out()):
                raise
            text = f"{error.message}; not loaded: {kept_out}; see modular-tf why PLUGIN"
            raise NotFoundError(text, path=name) from error

    def _kept_out(self) -> str:
        """Return the device plugins that were found and are not loaded, each with its state."""
        kept_out = [
            (record.name, record.state.value, record.reason.rule if record.reason else None)
            for record in self._known.records(self._registries.schemes)
            if Kind.DEVICE.value in record.kinds and record.state in _KEPT_OUT
        ]
        return ", ".join(
            f"{name} ({state}, {rule})" if rule else f"{name} ({state})"
            for name, state, rule in kept_out
        )

    def platform(self, name: str) -> RegisteredPlatform:
        """Return the device platform of that name, in any case, whether it serves or not.

        Raises:
            NotFoundError: No registered platform has it.
        """
        return self._registries.devices.platform(name)

    def filesystem(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme, "" for plain paths.

        Raises:
            UnimplementedError: None serves it; the message lists those that are served, and says
                of a plugin that does not get the scheme how to give it to that.
            ClosedError: The service is closed.
        """
        try:
            return self._registries.schemes.get(scheme)
        except UnimplementedError as error:
            raise self._with_refusals(error, scheme) from None

    def filesystem_for(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme.

        Raises:
            UnimplementedError: None serves it; the message is as that of `filesystem`.
            ClosedError: The service is closed.
        """
        try:
            return self._registries.schemes.for_uri(uri)
        except UnimplementedError as error:
            raise self._with_refusals(error, scheme_of(uri)) from None

    def _with_refusals(self, error: UnimplementedError, scheme: str) -> UnimplementedError:
        """Return the error with the reasons why plugins do not serve the scheme, and what does."""
        refusals = [
            f"; {reason.message}" + (f". {reason.remedy}" if reason.remedy else "")
            for record in self._known.records(self._registries.schemes)
            for reason in record.reasons
            if reason.scheme == scheme
        ]
        if step := self.next_step(scheme):
            refusals.append(f"; {step}")
        if not refusals:
            return error
        text = error.message + "".join(refusals)
        return UnimplementedError(
            text, plugin=error.plugin, path=error.path, operation=error.operation, rule=error.rule
        )

    # -- instances ------------------------------------------------------------------------------

    def instance(
        self, scheme: str, *, name: str, environment: Mapping[str, str | None]
    ) -> Filesystem:
        """Return one more filesystem of the plugin that serves a scheme, for another account.

        It runs in a worker process with an environment of its own, whatever `Config.isolation`
        says, and is closed with this service. `filesystem` and gfile go on with the plugin itself.

        Args:
            scheme: The scheme.
            name: Names it in lists and messages: 1 to 64 letters, digits, `.`, `_` and `-`; unique
                in this service.
            environment: Variables that its process has besides those of this one, or instead of
                them; None unsets one. No value of a variable with the name of a secret is shown
                anywhere.

        Raises:
            UnimplementedError: None serves the scheme.
            InvalidArgumentError: A Python object serves it, or a name or a variable cannot be.
            AlreadyExistsError: There is an instance of this name.
            UnavailableError: No process can be started, or the plugin does not load in it (LD-144).
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        return self._instances.add(self._plugin_of(scheme), scheme, name, environment)

    def instances(self) -> dict[str, str]:
        """Return the plugins of the instances that are open, by the instance's name. [any thread]

        The names of those that fsspec's storage options asked for begin with `options:`.
        """
        return self._instances.plugins()

    def workers(self) -> list[WorkerRecord]:
        """Return what the worker processes of this service do now, in order of their plugins.

        Those of plugins in workers that nobody has used yet are not started.
        """
        from modular_tf.isolation.worker import workers_of  # noqa: PLC0415  (the native core)

        return workers_of([*self._registries.schemes.serving.values(), *self._instances])

    def shared_instance(self, scheme: str, environment: Mapping[str, str | None]) -> Filesystem:
        """Return the instance with this environment, opened when it is first asked for.

        Raises:
            UnimplementedError: As of `instance`, like the other errors.
        """
        self._lock.check_open()
        return self._instances.shared(self._plugin_of(scheme), scheme, environment)

    def instance_name(self, scheme: str, environment: Mapping[str, str | None]) -> str:
        """Return the name that `shared_instance` gives it, from which no secret can be guessed.

        Raises:
            UnimplementedError: As of `instance`, like the other errors.
        """
        return shared_name(self._plugin_of(scheme), scheme, environment)

    @delivers_at_end
    def _plugin_of(self, scheme: str) -> Plugin:
        if not isinstance(scheme, str):
            raise unexpected(scheme, "a scheme", "a text")
        serving = self._registries.schemes.serving.get(scheme)
        if serving is None:
            self._registries.schemes.get(scheme)  # which says why
        owner = "" if serving is None else serving.plugin
        with self._lock:
            found = next(
                (entry.plugin for entry in self._known if entry.plugin.name == owner), None
            )
        if found is None:
            text = f"scheme {scheme!r}: a Python object serves it, which has no process of its own"
            raise InvalidArgumentError(text)
        return found

    # -- kernels and operations -----------------------------------------------------------------

    @property
    def kernel_registry(self) -> KernelRegistry:
        """The kernels of all plugins; libraries that bring some are mapped now.

        Raises:
            ClosedError: The service is closed.
            ShortageError: One cannot be mapped now; the next use tries again.
        """
        self._lock.check_open()
        self._registries.operations.open_promised()
        return self._registries.operations.registry

    def kernels(
        self, op: str | None = None, device_type: str | None = None, plugin: str | None = None
    ) -> tuple[KernelRegistration, ...]:
        """Return the kernels that plugins have registered, in order of registration.

        Args:
            op: Those of one operation; of all by default.
            device_type: Those for one type of devices.
            plugin: Those of one plugin, by its name.

        Raises:
            ClosedError: The service is closed.
        """
        return self.kernel_registry.kernels(op, device_type, plugin)

    def op_definitions(self, name: str | None = None) -> tuple[OpDefinition, ...]:
        """Return the definitions of operations, TensorFlow's and plugins' own, by name.

        Args:
            name: That of one operation; all by default.

        Raises:
            NotFoundError: Nobody defines an operation of this name (rule KN-040).
            ClosedError: The service is closed.
        """
        registry = self.kernel_registry
        names = registry.op_names() if name is None else (name,)
        return tuple(registry.definition(each) for each in names)

    def op(self, name: str, label: str = "") -> Op:
        """Return an operation, which works on the device of its inputs.

        Args:
            name: Of the operation.
            label: Which kernels it asks for; "" for ordinary ones.

        Raises:
            NotFoundError: Nobody defines it (rule KN-040).
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        return self._registries.operations.op(name, label)
