"""The user's settings of the memory of devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from modular_tf.rules.unknown_keys import unknown_keys

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE_TYPE = re.compile(r"[A-Z][A-Z_]*")
"""Device types, as TensorFlow accepts them."""


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_fraction(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value <= 1  # type: ignore[operator]  # a number, as was just seen


_EXPECTED: dict[str, tuple[Callable[[object], bool], str]] = {
    "limit_bytes": (_is_size, "a number of bytes"),
    "fraction": (_is_fraction, "a number above 0 and at most 1"),
    "growth": (_is_flag, "true or false"),
    "garbage_collection": (_is_flag, "true or false"),
    "host_limit_bytes": (_is_size, "a number of bytes"),
}


def why_wrong(key: str, value: object) -> str | None:
    """Return the expected values of a setting, None if the value is valid."""
    is_right, expected = _EXPECTED[key]
    return None if is_right(value) else expected


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

    limit_bytes: int | None = None
    fraction: float | None = None
    growth: bool | None = None
    garbage_collection: bool | None = None
    host_limit_bytes: int | None = None

    def __post_init__(self) -> None:
        for key in _EXPECTED:
            value = getattr(self, key)
            if value is not None and (expected := why_wrong(key, value)) is not None:
                raise ValueError(f"MemorySettings.{key}: expected {expected}, found {value!r}")
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
    """Return the settings in the `memory` table of a configuration.

    Args:
        table: Settings, and tables of them by device type.

    Returns:
        Settings by device type; those for all types under "".

    Raises:
        ValueError: It is no such table; the message names the key, what was expected and what was
            found.
    """
    if not isinstance(table, Mapping):
        raise ValueError(f"memory: expected a table, found {table!r}")  # noqa: TRY004  (in a file)
    general = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    parsed = {"": _parse(general, "memory")} if general else {}
    for device_type, values in table.items():
        if isinstance(values, Mapping):
            where = f"memory.{device_type}"
            if not DEVICE_TYPE.fullmatch(device_type):
                raise ValueError(f"{where}: expected a device type, as GPU: A-Z and _")
            parsed[device_type] = _parse(values, where)
    return parsed


def _parse(values: Mapping[str, object], where: str) -> MemorySettings:
    if (wrong := unknown_keys(values, _EXPECTED)) is not None:
        raise ValueError(f"{where}: {wrong}")
    for key, value in values.items():
        if (expected := why_wrong(key, value)) is not None:
            raise ValueError(f"{where}.{key}: expected {expected}, found {value!r}")
    if "limit_bytes" in values and "fraction" in values:
        raise ValueError(f"{where}: limit_bytes and fraction: expected one of the two")
    return MemorySettings(**values)  # type: ignore[arg-type]  # each was checked by its key


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
