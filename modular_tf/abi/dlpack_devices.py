"""The device types of DLPack, and what is known of each."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["DLPACK_VERSION", "HOST", "DeviceType"]

DLPACK_VERSION = (1, 3)


class DeviceType(IntEnum):
    """`DLDeviceType`; the last three were merged after DLPack 1.3. 5 and 6 mean nothing."""

    CPU = 1
    CUDA = 2
    CUDA_HOST = 3
    OPENCL = 4
    VULKAN = 7
    METAL = 8
    VPI = 9
    ROCM = 10
    ROCM_HOST = 11
    EXT_DEV = 12
    CUDA_MANAGED = 13
    ONE_API = 14
    WEB_GPU = 15
    HEXAGON = 16
    MAIA = 17
    TRN = 18
    TPU = 19
    TPU_HOST = 20
    ASCEND = 21

    @property
    def is_host_readable(self) -> bool:
        """Whether the host may read the memory by its address."""
        return self in _HOST_READABLE

    @property
    def is_opaque(self) -> bool:
        """Whether `data` is a handle, so that the memory can be neither offset nor offered."""
        return self in _OPAQUE

    @property
    def is_numbered(self) -> bool:
        """Whether memory of this type has the number of its device; else it has number 0."""
        return not (self.is_host_readable or self is DeviceType.CUDA_MANAGED)

    @property
    def is_device_memory(self) -> bool:
        """Whether memory of this type is a device's own, at an address."""
        return not (self.is_host_readable or self.is_opaque or self is DeviceType.TPU_HOST)


_HOST_READABLE = frozenset({DeviceType.CPU, DeviceType.CUDA_HOST, DeviceType.ROCM_HOST})
_OPAQUE = frozenset(
    {
        DeviceType.OPENCL,
        DeviceType.VULKAN,
        DeviceType.METAL,
        DeviceType.VPI,
        DeviceType.WEB_GPU,
    }
)

HOST = (int(DeviceType.CPU), 0)
"""What `dl_device` is for memory of the host."""
