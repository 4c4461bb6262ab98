"""The limits of arenas, by the configuration and TensorFlow's environment variables.

The rules and numbers are those that TensorFlow 2.21 applies to the devices of plugins. Functions
know nothing but their arguments, the environment included. [any thread]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.device.memory.memory_settings import (
    GARBAGE_COLLECTION_VARIABLE,
    GROWTH_VARIABLE,
    HOST_LIMIT_VARIABLE,
    MemorySettings,
)
from modular_tf.errors import InternalError, InvalidArgumentError
from modular_tf.events import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20

_LARGE_DEVICE = 2 << 30
_RESERVE_OF_SMALL = 255 * MIB
_LEAST_RESERVE_OF_LARGE = 300 * MIB
_PERCENT_OF_LARGE = 6
_DEFAULT_HOST_LIMIT = 131072 * MIB
_HOST_LIMIT = re.compile("[0-9]{1,12}")  # up to an exbibyte
# TensorFlow reads the two switches by different functions: one takes these two words exactly, the
# other also digits and capitals.
_GROWTH_WORDS = {"true": True, "false": False}
_SWITCH_WORDS = {**_GROWTH_WORDS, "1": True, "0": False}

_log = EventLog("device")


def system_reserve(free_bytes: int) -> int:
    """Return the part of a device's free memory that is left to the system, in bytes."""
    if free_bytes >= _LARGE_DEVICE:
        return max(_LEAST_RESERVE_OF_LARGE, free_bytes * _PERCENT_OF_LARGE // 100)
    return _RESERVE_OF_SMALL if free_bytes > _RESERVE_OF_SMALL else 0


def device_bytes_limit(
    free_bytes: int, total_bytes: int, *, fraction: float = 0.0, unified_memory: bool = False
) -> int:
    """Return the limit of a device's arena, in bytes, from its free and its total bytes.

    `fraction` is `per_process_gpu_memory_fraction`, a share of the total, free or not; 0 is unset.

    Raises:
        InternalError: Unified memory was asked for, as a fraction above 1 does too; or the plugin
            reported less than nothing.
        InvalidArgumentError: The fraction is negative or not a number.
    """
    if fraction > 1 or unified_memory:
        raise InternalError(
            "Unified memory is not supported yet: choose a memory fraction of at most 1, found "
            f"{fraction}, and leave unified memory off"
        )
    if not fraction >= 0:
        raise InvalidArgumentError(f"the memory fraction is {fraction}, expected 0..1 (0: unset)")
    if free_bytes < 0 or total_bytes < 0:
        raise InternalError(
            f"device_memory_usage reported {free_bytes} of {total_bytes} bytes free, expected "
            "sizes of at least 0; report it to the plugin's authors"
        )
    if fraction:
        return int(total_bytes * fraction)
    return free_bytes - system_reserve(free_bytes)


def environment_settings(environment: Mapping[str, str]) -> MemorySettings:
    """Return the settings in TensorFlow's environment variables; invalid ones are logged."""
    return MemorySettings(
        growth=_flag(environment, GROWTH_VARIABLE, _GROWTH_WORDS),
        garbage_collection=_flag(environment, GARBAGE_COLLECTION_VARIABLE, _SWITCH_WORDS),
        host_limit_bytes=_host_limit(environment),
    )


def memory_growth(settings: MemorySettings, *, forced_by_plugin: bool = False) -> bool:
    """Return whether an arena starts small and grows; by default it does not, as in TensorFlow.

    A platform's `force_memory_growth` comes first; what it overrules is logged.
    """
    if forced_by_plugin and settings.growth is False:
        _log.warning("memory_growth.forced")
    return forced_by_plugin or bool(settings.growth)


def garbage_collection(settings: MemorySettings) -> bool:
    """Return whether unused regions are freed on memory pressure; True by default."""
    return settings.garbage_collection is not False


def host_bytes_limit(settings: MemorySettings) -> int:
    """Return the limit of an arena of host memory that devices can reach: 128 GiB by default."""
    limit = settings.host_limit_bytes
    return _DEFAULT_HOST_LIMIT if limit is None else limit


def _host_limit(environment: Mapping[str, str]) -> int | None:
    text = environment.get(HOST_LIMIT_VARIABLE)
    if not text:
        return None
    if not _HOST_LIMIT.fullmatch(text):
        _misread(HOST_LIMIT_VARIABLE, text)
        return None
    return int(text) * MIB


def _flag(environment: Mapping[str, str], variable: str, words: Mapping[str, bool]) -> bool | None:
    text = environment.get(variable)
    if not text:
        return None
    value = words.get(text if words is _GROWTH_WORDS else text.lower())
    if value is None:
        _misread(variable, text)
    return value


def _misread(variable: str, text: str) -> None:
    _log.warning("environment.misread", variable=variable, value=text)
