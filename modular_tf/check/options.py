"""The options of checks, which profiles and `[options]` of the settings give a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.rules.keys import Key, flag, is_number, keys_of, list_of, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


def _whole(least: int) -> Key:
    expected = f"a whole number, {least} or more"
    return Key(expected, lambda value: type(value) is int and value >= least)


_TEXT = Key("a string", lambda value: isinstance(value, str))
_SECONDS = Key(
    "a number of seconds above 0", lambda value: is_number(value) and 0 < value < float("inf")
)
_STRINGS = list_of("a list of strings", _TEXT.is_right)
_ORDINALS = list_of("a list of whole numbers from 0 on", _whole(0).is_right)
_LENGTH = Key(
    "true or false, or a number of bytes above 0",
    lambda value: value is False or (isinstance(value, int) and value > 0),
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a profile or the user decides about checks; None leaves a value to each check.

    Attributes:
        capacity_option: The plugin's own option that limits the bytes of a store in memory: a check
            of full stores sets it to 1.
        clock_tolerance_s: How far the clock of the store may be from the clock of this machine.
        create_roots: Whether a directory is made for each check; false where a file needs no
            directory, and one is slow to make.
        large_bytes: The length of what checks call a large file or memory.
        large_files: Whether files of more than 2 GiB are tried, or the length of what is tried
            instead.
        load_seconds: How long the library may take to load.
        longest_program: How many steps a random sequence has at most (level 5).
        many: How many files, paths or events are many.
        ops: The operations whose kernels are called, as globs over their names.
        ordinals: The numbers of the devices that are tried.
        prepared: Whether the root holds what `--write-files` writes, and nothing is made there.
        pressure_mib: How many MiB of device memory are held to see what happens without.
        programs: How many random sequences are tried (level 5).
        repeat: How often something is done to see what each round leaves behind.
        schemes: The schemes that are tried, without `://`; `""` for local paths. Where none is
            named, that of the root, or all of the plugin.
    """

    capacity_option: str = setting("capacity_bytes", _TEXT)
    clock_tolerance_s: float | None = setting(None, _SECONDS)
    create_roots: bool = setting(key=flag(), default=True)
    large_bytes: int | None = setting(None, _whole(1))
    large_files: Any = setting(key=_LENGTH, default=False)  # noqa: RUF009  (as the others)
    load_seconds: float | None = setting(None, _SECONDS)
    longest_program: int = setting(144, _whole(1))
    many: int | None = setting(None, _whole(1))
    ops: tuple[str, ...] = setting(("*",), _STRINGS)
    ordinals: tuple[int, ...] = setting((0,), _ORDINALS)
    prepared: bool = setting(key=flag(), default=False)
    pressure_mib: int = setting(128, _whole(1))
    programs: int = setting(200, _whole(1))
    repeat: int | None = setting(None, _whole(1))
    schemes: tuple[str, ...] | None = setting(None, _STRINGS)


OPTIONS: Mapping[str, Key] = keys_of(Options)
"""What the value of each option may be, by name."""
