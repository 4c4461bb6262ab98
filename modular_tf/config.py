"""TensorFlow's `tf.config`, as far as devices can be listed, on the default service."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.device.registry import PhysicalDevice

__all__ = ["list_physical_devices"]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return all hardware of the plugins, visible or not, CPU first. [any thread]

    Args:
        device_type: Only this type, such as `GPU`.

    Returns:
        Pairs of `name` (`/physical_device:TYPE:n`) and `device_type`.
    """
    from modular_tf.service.default import default_service  # noqa: PLC0415  (loads the native core)

    return default_service().device_registry.physical_devices(device_type)
