"""Facts about an operation: who defines it, and which kernels of which plugins compute it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from modular_tf.service.why.answer import STATE, Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.service.service import PluginService

_NAME = re.compile(r"[A-Z_][A-Za-z0-9_>]*")


def may_be_op(name: str) -> bool:
    """Return whether a name has an operation's form; in capitals it must be a standard one."""
    if _NAME.fullmatch(name) is None:
        return False
    if not name.isupper():
        return True
    from modular_tf.kernel.standard_ops import standard_ops  # noqa: PLC0415  (for operations)

    return name in standard_ops()


def about_op(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about an operation; none if nobody defines it or has a kernel of it.

    Libraries that bring kernels are mapped where the name has the form of an operation's.
    """
    if not may_be_op(name):
        return
    from modular_tf.kernel.aliases import aliases_of, computed_by  # noqa: PLC0415  (for operations)

    registry = service.kernel_registry
    definition = registry.find_definition(name)
    aliases = [alias.own for alias in aliases_of(name)]
    kernels = [each for op in (name, *aliases) for each in registry.kernels_of(op)]
    if definition is None and not kernels:
        return
    subject = f"operation {name}"
    yield Fact(subject, STATE, f"{subject} {_computed(len(kernels))}")
    yield from _sources(subject, registry, name)
    for op in (name, *aliases):
        yield from _kernels(subject, service, registry, op, name)
    for standard in computed_by(name):
        yield Fact(subject, "serves", f"its kernels compute {standard} as well")
    yield _next(subject, name, has_kernels=bool(kernels))


def _computed(n_kernels: int) -> str:
    if not n_kernels:
        return "is computed by no kernel of a loaded plugin"
    return "is computed by 1 kernel" if n_kernels == 1 else f"is computed by {n_kernels} kernels"


def _sources(subject: str, registry: KernelRegistry, name: str) -> Iterator[Fact]:
    """Yield who defines it; the first one counts."""
    used = registry.find_definition(name)
    if used is None:
        yield Fact(subject, "problem", "nobody defines it, so its kernels cannot run")
        return
    yield Fact(subject, "source", f"defined by {used.source}: {used!r}")
    for other in registry.plugin_definitions():
        if other.name == name and other is not used:
            alike = "in the same way" if other == used else "in another way, which is not used"
            yield Fact(subject, "contest", f"{other.source} defines it too, {alike}")


def _kernels(
    subject: str, service: PluginService, registry: KernelRegistry, op: str, name: str
) -> Iterator[Fact]:
    """Yield how many kernels each plugin has for a type of devices, and which devices these are."""
    from modular_tf.kernel.selection import device_types_of  # noqa: PLC0415  (for operations)

    counts = Counter((each.plugin, each.device_type) for each in registry.kernels_of(op))
    devices = service.devices() if counts else []
    for (plugin, device_type), count in counts.items():
        served = [
            device.name
            for device in devices
            if device_type in device_types_of(device.device_type, is_pluggable=not device.is_host)
        ]
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        where = ", ".join(served) or "no visible device"
        under = f", under the name {op}" if op != name else ""
        text = f"{kernels} of {plugin} for device type {device_type} ({where}){under}"
        yield Fact(subject, "serves", text)


def _next(subject: str, name: str, *, has_kernels: bool) -> Fact:
    if has_kernels:
        return Fact(subject, "next", f"`modular-tf ops {name}` shows its attributes and kernels")
    return Fact(subject, "next", "load a plugin that has kernels of it; `modular-tf ops` lists all")
