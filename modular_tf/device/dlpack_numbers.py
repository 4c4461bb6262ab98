"""Which DLPack device a platform's memory is said to be on (dlpack §4).

kDLExtDev means another device to every maker, and a process may hold several platforms. Each gets
a range of numbers of its own, so that a number leads back to one platform.
"""

from __future__ import annotations

import threading

from modular_tf.abi.dlpack_devices import HOST, DeviceType
from modular_tf.errors import InvalidArgumentError

__all__ = ["ORDINALS_OF_A_PLATFORM", "DeviceNumbers", "dlpack_device"]

ORDINALS_OF_A_PLATFORM = 4096
_CONFIGURABLE = frozenset(
    {
        DeviceType.CUDA,
        DeviceType.ROCM,
        DeviceType.EXT_DEV,
        DeviceType.CUDA_MANAGED,
        DeviceType.ONE_API,
    }
)


class DeviceNumbers:
    """Numbers of kDLExtDev devices, a range for each platform. [any thread].

    The first platform that asks counts from 0, as its users would expect.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._platforms: list[str] = []

    def number(self, platform: str, ordinal: int) -> int:
        """Return the number of a device.

        Raises:
            InvalidArgumentError: The ordinal is outside a platform's range.
        """
        if not 0 <= ordinal < ORDINALS_OF_A_PLATFORM:
            raise InvalidArgumentError(
                f"platform {platform!r}: ordinal {ordinal} has no DLPack device number; "
                f"expected 0 to {ORDINALS_OF_A_PLATFORM - 1}"
            )
        with self._lock:
            if platform not in self._platforms:
                self._platforms.append(platform)
            return self._platforms.index(platform) * ORDINALS_OF_A_PLATFORM + ordinal

    def find(self, number: int) -> tuple[str, int] | None:
        """Return platform and ordinal of a number; None if it was given to nobody."""
        index, ordinal = divmod(number, ORDINALS_OF_A_PLATFORM)
        with self._lock:
            return (self._platforms[index], ordinal) if index in self._indices() else None

    def _indices(self) -> range:
        return range(len(self._platforms))


_NUMBERS = DeviceNumbers()


def dlpack_device(
    platform: str,
    ordinal: int,
    *,
    is_host_readable: bool = False,
    configured: DeviceType | None = None,
) -> tuple[int, int]:
    """Return how to describe memory of a device.

    Memory that the host can read is kDLCPU, whoever allocated it: consumers refuse the types of
    pinned memory. Other memory is kDLExtDev with a number of this process, unless the user says
    what it really is; a vendor's type is never concluded from a name.

    Args:
        platform: The platform's name.
        ordinal: The device's number on it, which a configured type has as its number.
        is_host_readable: Whether the host may read the memory by its address, now.
        configured: What the user's configuration says that the platform's memory is.

    Raises:
        InvalidArgumentError: No address can be on a device of the configured type.
    """
    if is_host_readable:
        return HOST
    if configured is None or configured is DeviceType.EXT_DEV:
        return int(DeviceType.EXT_DEV), _NUMBERS.number(platform, ordinal)
    if configured not in _CONFIGURABLE:
        names = ", ".join(sorted(kind.name for kind in _CONFIGURABLE))
        raise InvalidArgumentError(
            f"platform {platform!r}: its memory cannot be of DLPack type {configured.name}; "
            f"expected one of {names}"
        )
    return int(configured), ordinal
