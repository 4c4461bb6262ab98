"""Reading the kit's own TOML files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.errors import ConfigError
from modular_tf.rules.keys import unknown_keys
from modular_tf.tables import parse_table

if TYPE_CHECKING:
    from collections.abc import Mapping

SHAPES: Mapping[type[object], str] = {
    dict: "a table",
    int: "a whole number",
    list: "a list",
    str: "a string",
}


def read_table(path: str) -> dict[str, Any]:
    """Return what stands in a TOML file.

    Raises:
        ConfigError: It cannot be read, or is not TOML.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return parse_table(stream.read())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}", path=path) from error


def value_of(text: str) -> Any:
    """Return the value that a text is in TOML.

    Raises:
        ValueError: It is none.
    """
    try:
        (value,) = parse_table(f"value = {text}").values()
    except RecursionError as error:
        raise ValueError(str(error)) from error
    return value


def require_keys(table: Mapping[str, Any], kinds: Mapping[str, type[object]], where: str) -> None:
    """Refuse keys that are unknown or have a value of another type.

    Args:
        table: What stands in the file.
        kinds: The type of each key that there may be.
        where: File and table, for the message.

    Raises:
        ConfigError: One is.
    """
    if (wrong := unknown_keys(table, kinds)) is not None:
        raise ConfigError(f"{where}: {wrong}")
    for key, value in table.items():
        if type(value) is not kinds[key]:
            expected = SHAPES[kinds[key]]
            raise ConfigError(f"{where}: {key}: expected {expected}, found {value!r:.100}")
