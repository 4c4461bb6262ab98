"""Telling the generations of the device interface apart.

Every header announces version 0.0.1, so only the sizes that a plugin writes into its structs, and
the slots that it sets, say which one it was compiled with (device-abi §A6).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import DEVICE_LAYOUTS, Dialect, layout

if TYPE_CHECKING:
    from collections.abc import Iterable

HOSTED = Dialect.DEVICE_V209
"""The one layout whose plugins this version serves."""

UNWRITTEN_PLATFORM_SIZE = 64
"""SP_Platform.struct_size before the call; no dialect uses it, so finding it means "not set"."""

UNWRITTEN_FNS_SIZE = 128
"""The same for SP_PlatformFns; most plugins leave it alone."""

UNWRITTEN_EXECUTOR_SIZE = 512
"""The same for SP_StreamExecutor."""

_NAMES = {
    Dialect.DEVICE_RFC: "the RFC of 2020-09-08",
    Dialect.DEVICE_V204: "TF 2.4",
    Dialect.DEVICE_V205: "TF 2.5-2.6",
    Dialect.DEVICE_V207: "TF 2.7-2.8",
    Dialect.DEVICE_V209: "TF 2.9-2.21",
}
_WITH_DEVICE_COUNT = frozenset({Dialect.DEVICE_V205, Dialect.DEVICE_V207, Dialect.DEVICE_V209})
_ALL = frozenset(_NAMES)

# Which 8-byte words of SP_PlatformFns are set, where no size was written.
_SLOT_PATTERNS: dict[frozenset[int], frozenset[Dialect]] = {
    frozenset(range(2, 11)): _WITH_DEVICE_COUNT,
    frozenset(range(2, 9)): _WITH_DEVICE_COUNT,
    frozenset(range(2, 8)): frozenset({Dialect.DEVICE_RFC}),
    frozenset({*range(2, 8), 10, 11}): frozenset({Dialect.DEVICE_RFC}),
    frozenset(range(2, 10)): frozenset({Dialect.DEVICE_RFC, Dialect.DEVICE_V204}),
}
_FNS_WORDS = 12


def describe(dialects: Iterable[Dialect]) -> str:
    """Return the names of dialects, oldest first."""
    return " or ".join(_NAMES[dialect] for dialect in _NAMES if dialect in set(dialects))


def dialects_of_registration(platform_size: int, fns_size: int, fns: bytes) -> frozenset[Dialect]:
    """Return the dialects that a filled registration may have; empty when the sizes disagree.

    Args:
        platform_size: SP_Platform.struct_size after the call.
        fns_size: SP_PlatformFns.struct_size after the call.
        fns: The bytes of SP_PlatformFns, with all that any dialect may have written.
    """
    by_platform = _by_size("SP_Platform", platform_size, UNWRITTEN_PLATFORM_SIZE)
    by_size = by_platform & _by_size("SP_PlatformFns", fns_size, UNWRITTEN_FNS_SIZE)
    if by_size <= _WITH_DEVICE_COUNT or len(by_size) == 1:
        return by_size
    return by_size & _by_slots(fns) or by_size & {HOSTED} or by_size


def refine_by_executor(
    dialects: frozenset[Dialect], executor_size: int, executor: bytes
) -> frozenset[Dialect]:
    """Drop the dialects that a filled SP_StreamExecutor rules out, as long as one is left.

    Args:
        dialects: What the registration left open.
        executor_size: SP_StreamExecutor.struct_size after the call.
        executor: Its bytes.
    """
    by_size = _by_size("SP_StreamExecutor", executor_size, UNWRITTEN_EXECUTOR_SIZE)
    if executor_size == UNWRITTEN_EXECUTOR_SIZE:
        by_size = _by_last_slots(executor)
    return dialects & by_size or dialects


def _by_size(name: str, size: int, unwritten: int) -> frozenset[Dialect]:
    """Return the dialects in which the struct has this size, as its macro or as `sizeof`.

    A size that no dialect uses is judged as the hosted layout: smaller, the missing slots count
    as NULL; larger, a newer header has appended fields.
    """
    if size in {0, unwritten}:
        return _ALL
    known = frozenset(
        entry.dialect
        for entry in DEVICE_LAYOUTS
        if entry.name == name and entry.dialect and size in {entry.struct_size, entry.size}
    )
    return known or frozenset({HOSTED})


def _by_slots(fns: bytes) -> frozenset[Dialect]:
    """Judge by the slots that are set; an unknown pattern is a faulty plugin of today's layout."""
    words = struct.unpack_from(f"={_FNS_WORDS}Q", fns)
    used = frozenset(index for index in range(2, _FNS_WORDS) if words[index])
    return _SLOT_PATTERNS.get(used, frozenset({HOSTED}))


def _by_last_slots(executor: bytes) -> frozenset[Dialect]:
    """Judge by what lies behind slot 30: nothing where that is host_callback, the last of old."""
    newest = layout("SP_StreamExecutor", HOSTED).slots
    set_ = [any(executor[slot.offset : slot.end]) for slot in newest[30:]]
    return frozenset({Dialect.DEVICE_V205}) if set_ == [True, False, False, False] else _ALL
