"""The DLPack device type and number of a platform's memory (dlpack §4).

kDLExtDev means another device to every maker, and a process may hold several platforms. Each gets
a range of numbers of its own, so that no two of them share a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_devices import HOST, DeviceType
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ConfigError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ORDINALS_OF_A_PLATFORM", "DeviceNumbers", "dlpack_device", "parse_dlpack_types"]

ORDINALS_OF_A_PLATFORM = 4096
_CONFIGURABLE = {kind.name: kind for kind in DeviceType if kind.is_device_memory}


class DeviceNumbers:
    """Numbers of kDLExtDev devices, a range for each platform. [any thread]

    The first platform that asks counts from 0, as its users would expect.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._platforms: list[str] = []

    def number(self, platform: str, ordinal: int) -> int:
        """Return the number of a device.

        Raises InvalidArgumentError if the ordinal is outside a platform's range.
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


_NUMBERS = DeviceNumbers()


def parse_dlpack_types(named: Mapping[str, str]) -> dict[str, DeviceType]:
    """Return the DLPack type of each platform's memory, from names of `DeviceType` by platform.

    Raises ConfigError if a name is none, or no device has memory of that type at addresses.
    """
    return {platform: _parse_type(platform, name) for platform, name in named.items()}


def _parse_type(platform: str, name: str) -> DeviceType:
    if name not in _CONFIGURABLE:
        raise ConfigError(
            f"dlpack_types: expected one of {', '.join(_CONFIGURABLE)} for memory of platform "
            f"{platform!r}, found {name!r}{_reason(name)}"
        )
    return _CONFIGURABLE[name]


def _reason(name: str) -> str:
    if name not in DeviceType.__members__ or not DeviceType[name].is_opaque:
        return ""
    return (
        ", whose memory is a handle of its API and not an address, which other libraries cannot "
        "use; leave the platform out, and give them copies by DeviceArray.to_host()"
    )


def dlpack_device(
    platform: str,
    ordinal: int,
    *,
    is_host_readable: bool = False,
    kind: DeviceType = DeviceType.EXT_DEV,
) -> tuple[int, int]:
    """Return the DLPack device of memory.

    Memory that the host can read is kDLCPU, whoever allocated it: consumers refuse the types of
    pinned memory. Other memory is kDLExtDev with a number of this process, unless the user says
    what it really is; a vendor's type is never concluded from a name.

    Args:
        platform: The platform's name.
        ordinal: The device's number on it, which types other than kDLExtDev have as their number;
            managed memory is of all devices, and has 0.
        is_host_readable: Whether the host may read the memory by its address, now.
        kind: What the user's configuration says that the platform's memory is.

    Raises:
        InvalidArgumentError: The ordinal is outside a platform's range.
    """
    if is_host_readable:
        return HOST
    if kind is DeviceType.EXT_DEV:
        return int(kind), _NUMBERS.number(platform, ordinal)
    return int(kind), ordinal if kind.is_numbered else 0
