"""The user's settings of the memory of devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from modular_tf.abi.registered_names import DEVICE_NAME
from modular_tf.errors import InternalError
from modular_tf.events import EventLog
from modular_tf.rules.keys import Key, checked_table, flag, is_number, keys_of, setting

GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
GARBAGE_COLLECTION_VARIABLE = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
HOST_LIMIT_VARIABLE = "TF_GPU_HOST_MEM_LIMIT_IN_MB"


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_fraction(value: object) -> bool:
    return is_number(value) and 0 < value <= 1  # type: ignore[operator]  # a number, as was just seen


_SIZE = Key("a number of bytes", _is_size)


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The settings of the arenas of a device; None for what is not set.

    They apply to plugins that let the host manage their memory (`use_bfc_allocator`, or the
    RFC's `create_allocator`), and for no others.

    Attributes:
        limit_bytes: What the arena of one device may take.
        fraction: The same as a share of all its memory, free or not; TensorFlow's
            `per_process_gpu_memory_fraction`.
        growth: Take memory as it is needed; otherwise all up to the limit at the first need.
        garbage_collection: Give unused regions back before an allocation fails.
        host_limit_bytes: What the arena of pinned memory of one device may take.
    """

    limit_bytes: int | None = setting(None, _SIZE)
    fraction: float | None = setting(None, Key("a number above 0 and at most 1", _is_fraction))
    growth: bool | None = setting(None, flag(GROWTH_VARIABLE))
    garbage_collection: bool | None = setting(None, flag(GARBAGE_COLLECTION_VARIABLE))
    host_limit_bytes: int | None = setting(None, _SIZE._replace(variables=(HOST_LIMIT_VARIABLE,)))

    def __post_init__(self) -> None:
        for name, key in keys_of(self).items():
            value = getattr(self, name)
            if value is not None and (expected := key.why_wrong(value)) is not None:
                raise ValueError(f"MemorySettings.{name}: expected {expected}, found {value!r}")
        if self.limit_bytes is not None and self.fraction is not None:
            raise ValueError(
                f"MemorySettings: limit_bytes is {self.limit_bytes} and fraction"
                f" {self.fraction}; expected one of the two"
            )

    def over(self, others: MemorySettings) -> MemorySettings:
        """Return these settings, completed by others where a field is None."""
        values: dict[str, Any] = {}
        for entry in fields(self):
            own = getattr(self, entry.name)
            values[entry.name] = getattr(others, entry.name) if own is None else own
        if self.limit_bytes is not None:
            values["fraction"] = None
        elif self.fraction is not None:
            values["limit_bytes"] = None
        return MemorySettings(**values)


def parse_memory(table: object) -> dict[str, MemorySettings]:
    """Return the settings in the `memory` table of a configuration by device type.

    Those for all types are under "". The table has settings, and tables of them by device type.
    Raises ValueError, which names the key, what was expected and what was found.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"memory: expected a table, found {table!r}")  # noqa: TRY004  (in a file)
    general = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    parsed = {"": _parse(general, "memory")} if general else {}
    for device_type, values in table.items():
        if isinstance(values, Mapping):
            where = f"memory.{device_type}"
            if not DEVICE_NAME.fullmatch(device_type):
                raise ValueError(f"{where}: expected a device type, as GPU: letters, digits and _")
            parsed[device_type] = _parse(values, where)
    return parsed


def _parse(values: Mapping[str, object], where: str) -> MemorySettings:
    checked = checked_table(keys_of(MemorySettings), values, where)
    if "limit_bytes" in values and "fraction" in values:
        raise ValueError(f"{where}: limit_bytes and fraction: expected one of the two")
    return MemorySettings(**checked)


def settings_of(memory: Mapping[str, MemorySettings], device_type: str) -> MemorySettings:
    """Return the settings of a device type: its own, completed by those for all types."""
    nothing = MemorySettings()
    return memory.get(device_type, nothing).over(memory.get("", nothing))


def all_under(
    memory: Mapping[str, MemorySettings], upper: MemorySettings
) -> dict[str, MemorySettings]:
    """Return the settings of all types, each overridden by `upper`."""
    found = {"": MemorySettings(), **memory}
    return {device_type: upper.over(settings) for device_type, settings in found.items()}


# -- the limits of arenas, by the configuration and tensorflow's environment variables -------------


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


def device_bytes_limit(free_bytes: int, total_bytes: int, fraction: float | None = None) -> int:
    """Return the limit of a device's arena, in bytes, from its free and its total bytes.

    `fraction` is `per_process_gpu_memory_fraction`, a share of the total, free or not; None is
    unset.

    Raises:
        InternalError: The plugin reported less than nothing.
    """
    if free_bytes < 0 or total_bytes < 0:
        raise InternalError(
            f"device_memory_usage reported {free_bytes} of {total_bytes} bytes free, expected "
            "sizes of at least 0; report it to the plugin's authors"
        )
    if fraction is not None:
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
