"""Where the plugins of one service register, and Python objects beside them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.device.registry import DeviceRegistry
from modular_tf.device.visible import parse_enabled_types
from modular_tf.filesystem.registry import FilesystemRegistry
from modular_tf.service.fsspec_clients import FsspecFallback
from modular_tf.service.operations import ServiceOperations

if TYPE_CHECKING:
    from modular_tf.service.configuration import Config


class Registries(NamedTuple):
    """The registries of one service. [any thread]

    Attributes:
        schemes: Which filesystem serves which scheme.
        fallback: What fsspec serves of the other schemes.
        devices: The factories of devices, by type and platform.
        operations: What the kernels of plugins compute.
    """

    schemes: FilesystemRegistry
    fallback: FsspecFallback
    devices: DeviceRegistry
    operations: ServiceOperations

    @classmethod
    def of_process(cls, config: Config) -> Registries:
        """Return empty ones, by the user's decisions and the environment of this process.

        Raises:
            InvalidArgumentError: The visible devices are malformed.
            ConfigError: What the configuration says of device memory cannot be.
        """
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
