"""The operations of one service: definitions, and kernels of its plugins that compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError, NotFoundError, unexpected
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.device import Device
    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.kernel.running import KernelRunner
    from modular_tf.kernel.variable import Variable


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
        return self._op(name, None, label)

    def on_device(self, device: Device, name: str, label: str = "") -> Op:
        """Return an operation on a device; raises as `op`."""
        return self._op(name, device, label)

    def variable(self, device: Device, dtype: Any) -> Variable:
        """Return a new variable on a device, without a value."""
        from modular_tf.kernel.variable import Variable  # noqa: PLC0415  (as the class says)

        self._check_open()
        return Variable(self._running().site_of(device), dtype)

    def _op(self, name: str, device: Device | None, label: str) -> Op:
        from modular_tf.kernel.op import Op  # noqa: PLC0415  (as the class says)

        self._check_open()
        if not isinstance(name, str):
            raise unexpected(name, "the name of an operation", "a text")
        self.open_promised()
        running = self._running()
        if self._closed:
            raise ClosedError("the plugin service is closed", operation=name)
        return running.kept_op(
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
