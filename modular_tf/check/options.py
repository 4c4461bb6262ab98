"""The options of checks, which profiles and `[options]` of the settings give a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.errors import ConfigError
from modular_tf.rules.keys import Key, flag, is_number, list_of, unknown_keys

if TYPE_CHECKING:
    from collections.abc import Mapping


class CheckOption(NamedTuple):
    """One option of the checks.

    Attributes:
        key: What its value may be.
        usual: What holds where nothing is said.
        meaning: What it changes.
    """

    key: Key
    usual: str
    meaning: str


def _whole(least: int) -> Key:
    return Key(
        f"a whole number, {least} or more", lambda value: type(value) is int and value >= least
    )


def _seconds(value: Any) -> bool:
    return is_number(value) and 0 < value < float("inf")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_SECONDS = Key("a number of seconds above 0", _seconds)
_STRINGS = list_of("a list of strings", _is_text)
_ORDINALS = list_of(
    "a list of whole numbers from 0 on", lambda value: type(value) is int and value >= 0
)
_LENGTH = Key(
    "true or false, or a number of bytes above 0", lambda value: value is False or _counts(value)
)


def _counts(value: Any) -> bool:
    return isinstance(value, int) and value > 0


OPTIONS: Mapping[str, CheckOption] = {
    "capacity_option": CheckOption(
        Key("a string", _is_text),
        '"capacity_bytes"',
        "The plugin's own option that limits the bytes of a store in memory: a check of full "
        "stores sets it to 1.",
    ),
    "clock_tolerance_s": CheckOption(
        _SECONDS,
        "that of the check",
        "How far the clock of the store may be from the clock of this machine.",
    ),
    "create_roots": CheckOption(
        flag(),
        "true",
        "Whether a directory is made for each check; false where a file needs no directory, and "
        "one is slow to make.",
    ),
    "large_bytes": CheckOption(
        _whole(1), "that of the check", "The length of what checks call a large file or memory."
    ),
    "large_files": CheckOption(
        _LENGTH,
        "false",
        "Whether files of more than 2 GiB are tried, or the length of what is tried instead.",
    ),
    "load_seconds": CheckOption(
        _SECONDS, "that of the check", "How long the library may take to load."
    ),
    "longest_program": CheckOption(
        _whole(1), "144", "How many steps a random sequence has at most (level 5)."
    ),
    "many": CheckOption(
        _whole(1), "that of the check", "How many files, paths or events are many."
    ),
    "ops": CheckOption(
        _STRINGS, '["*"]', "The operations whose kernels are called, as globs over their names."
    ),
    "ordinals": CheckOption(_ORDINALS, "[0]", "The numbers of the devices that are tried."),
    "prepared": CheckOption(
        flag(),
        "false",
        "Whether the root holds what `--write-files` writes, and nothing is made there.",
    ),
    "pressure_mib": CheckOption(
        _whole(1), "128", "How many MiB of device memory are held to see what happens without."
    ),
    "programs": CheckOption(_whole(1), "200", "How many random sequences are tried (level 5)."),
    "repeat": CheckOption(
        _whole(1),
        "that of the check",
        "How often something is done to see what each round leaves behind.",
    ),
    "schemes": CheckOption(
        _STRINGS,
        "that of the root, or all of the plugin",
        'The schemes that are tried, without `://`; `""` for local paths.',
    ),
}
"""Every option that a check reads, by name."""


def require_options(options: Mapping[str, Any], where: str) -> None:
    """Refuse options that no check reads, and values that an option cannot have.

    Args:
        options: By name.
        where: File and table, for the message.

    Raises:
        ConfigError: One is unknown, or has a value of another shape.
    """
    if (wrong := unknown_keys(options, OPTIONS)) is not None:
        raise ConfigError(f"{where}: {wrong}")
    for name, value in options.items():
        expected = OPTIONS[name].key.why_wrong(value)
        if expected is not None:
            raise ConfigError(f"{where}: {name}: expected {expected}, found {value!r:.100}")
