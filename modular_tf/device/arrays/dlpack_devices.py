"""Devices as DLPack sees them (dlpack §4): type and number of their memory, and their streams.

kDLExtDev means another device to every maker, and a process may hold several platforms. Each gets
a range of numbers of its own, so that no two of them share a number. Consumers of the C exchange
table, which waits for nothing, ask for the stream to work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_devices import HOST, DeviceType
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.device.device_core import usable
from modular_tf.errors import ConfigError, InvalidArgumentError
from modular_tf.native.ffi import lib
from modular_tf.native.tensor import set_work_stream_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.device.executor import Executor

ORDINALS_OF_A_PLATFORM = 4096
_CONFIGURABLE = {kind.name: kind for kind in DeviceType if kind.is_device_memory}


_platforms: list[str] = []  # with kDLExtDev devices; each has a range of numbers
_numbering = ForkLock()


def _number(platform: str, ordinal: int) -> int:
    """Return the number of a kDLExtDev device, of a range for each platform. [any thread]

    The first platform that asks counts from 0, as its users would expect. Raises
    InvalidArgumentError if the ordinal is outside a platform's range.
    """
    if not 0 <= ordinal < ORDINALS_OF_A_PLATFORM:
        raise InvalidArgumentError(
            f"platform {platform!r}: ordinal {ordinal} has no DLPack device number; "
            f"expected 0 to {ORDINALS_OF_A_PLATFORM - 1}"
        )
    with _numbering:
        if platform not in _platforms:
            _platforms.append(platform)
        return _platforms.index(platform) * ORDINALS_OF_A_PLATFORM + ordinal


def parse_dlpack_types(named: Mapping[str, str]) -> dict[str, DeviceType]:
    """Return the DLPack type of each platform's memory, from names of `DeviceType` by platform.

    Raises ConfigError if a name is none, or no device has memory of that type at addresses.
    """
    for platform, name in named.items():
        if name in _CONFIGURABLE:
            continue
        why = ""
        if name in DeviceType.__members__ and DeviceType[name].is_opaque:
            why = (
                ", whose memory is a handle of its API and not an address, which other libraries"
                " cannot use; leave the platform out, and give them copies by DeviceArray.to_host()"
            )
        raise ConfigError(
            f"dlpack_types: expected one of {', '.join(_CONFIGURABLE)} for memory of platform "
            f"{platform!r}, found {name!r}{why}"
        )
    return {platform: _CONFIGURABLE[name] for platform, name in named.items()}


def dlpack_device(
    platform: str, ordinal: int, *, kind: DeviceType = DeviceType.EXT_DEV
) -> tuple[int, int]:
    """Return the DLPack device of memory that the host cannot read; what it can is `HOST`.

    It is kDLExtDev with a number of this process, unless the user says what it really is; a
    vendor's type is never concluded from a name.

    Args:
        platform: The platform's name.
        ordinal: The device's number on it, which types other than kDLExtDev have as their number;
            managed memory is of all devices, and has 0.
        kind: What the user's configuration says that the platform's memory is.

    Raises:
        InvalidArgumentError: The ordinal is outside a platform's range.
    """
    if kind is DeviceType.EXT_DEV:
        return int(kind), _number(platform, ordinal)
    return int(kind), ordinal if kind.is_numbered else 0


_EXECUTORS: dict[tuple[int, int], LiveObjects[Executor]] = {}
"""Whose memory a DLPack device is; several where the configuration calls them all by one type."""


def note_device(place: tuple[int, int], executor: Executor) -> None:
    """Remember that memory of a DLPack device is an executor's. [any thread]"""
    if place == HOST:  # has no streams, and is waited for
        return
    known = _EXECUTORS.get(place)
    if known is None:
        known = _EXECUTORS.setdefault(place, LiveObjects())
    known.add(executor)


def current_work_stream(device_type: int, number: int) -> int:
    """Return the stream on which a consumer's work comes after the present work of a device.

    For kDLExtDev that is the address of the plugin's SP_Stream of the device's compute stream,
    which waits for all other streams of the device from then on. A vendor's types have streams of
    their own, which nothing here can make of an SP_Stream: the work is waited for, and the default
    stream, 0, is right. It is 0 too for devices that no array here was on. Raises ClosedError if
    the device was closed meanwhile, and errors of `Executor.synchronize`.
    """
    known = _EXECUTORS.get((device_type, number))
    executors = [] if known is None else [each for each in known.all() if not each.closed]
    if device_type == DeviceType.EXT_DEV and len(executors) == 1:
        stream = executors[0].context.compute
        executors[0].order_after_all(stream)
        return int(lib.mtf_stream_handle(usable(stream)))
    for executor in executors:
        executor.synchronize()
    return 0


set_work_stream_query(current_work_stream)
