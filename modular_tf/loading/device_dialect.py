"""Which version (dialect) of the device interface a plugin was compiled with.

Every header announces version 0.0.1, so only the sizes that a plugin writes into its structs, and
the slots that it sets, say which one it was compiled with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.layouts import DEVICE_LAYOUTS, Dialect, layout

if TYPE_CHECKING:
    from collections.abc import Collection

HOSTED = Dialect.DEVICE_V209
"""The newest layout, which the tables of every plugin are converted to."""

UNWRITTEN_PLATFORM_SIZE = 64
"""SP_Platform.struct_size before the call; no dialect uses it, so finding it means "not set"."""

UNWRITTEN_FNS_SIZE = 128
"""The same for SP_PlatformFns; most plugins leave it alone."""

UNWRITTEN_EXECUTOR_SIZE = 512
"""The same for SP_StreamExecutor."""

_NAMES = {
    Dialect.DEVICE_RFC: "the RFC of 2020-09-08",
    Dialect.DEVICE_V205: "TF 2.5-2.6",
    Dialect.DEVICE_V207: "TF 2.7-2.8",
    Dialect.DEVICE_V209: "TF 2.9-2.21",
}
_ALL = frozenset(_NAMES)


def _with_slot(struct: str, slot: str) -> frozenset[Dialect]:
    return frozenset(d for d in _ALL if any(s.name == slot for s in layout(struct, d).slots))


WITH_DEVICE_COUNT = _with_slot("SP_PlatformFns", "get_device_count")
"""The dialects that ask a function for the number of devices, not a field of SP_Platform."""

_WITH_FILLS = _with_slot("SP_StreamExecutor", "memset")
_RFC = frozenset({Dialect.DEVICE_RFC})

# TensorFlow 2.4 had a layout of its own, which no published plugin has: it is reported and refused.
_V204_PLATFORM_SIZES, _V204_FNS_SIZE = (41, 48), 80

_ALL_COUNTED = frozenset(range(2, 11))  # every slot since TF 2.5

# Which 8-byte words of SP_PlatformFns point to code, where no size was written.
_SLOT_PATTERNS: dict[frozenset[int], frozenset[Dialect]] = {
    _ALL_COUNTED: WITH_DEVICE_COUNT,
    frozenset(range(2, 9)): WITH_DEVICE_COUNT,  # without timers
    frozenset(range(2, 10)): _RFC,
    frozenset(range(2, 8)): _RFC,  # without allocator
    frozenset(range(2, 12)): _RFC,
    frozenset({*range(2, 8), 10, 11}): _RFC,
    frozenset(range(2, 6)): _RFC,  # without timers, as the next two
    frozenset({*range(2, 6), 8, 9}): _RFC,
    frozenset({*range(2, 6), 10, 11}): _RFC,
}
_FNS_WORDS = 12
_FIRST_FILL = 32  # SP_StreamExecutor: host_callback of old, mem_zero since TF 2.7
_END_OF_DEVICE_FNS = 5


def describe(dialects: Collection[Dialect]) -> str:
    """Return the names of dialects, oldest first."""
    return " or ".join(_NAMES[dialect] for dialect in _NAMES if dialect in dialects)


def newest(dialects: Collection[Dialect]) -> Dialect:
    """Return the newest of some dialects; fields that differ are zero in the plugin's structs."""
    return [dialect for dialect in _NAMES if dialect in dialects][-1]


def dialects_of_registration(
    platform_size: int, fns_size: int, code: frozenset[int]
) -> frozenset[Dialect]:
    """Return the dialects that a filled registration may have.

    None where it contradicts itself, or has the layout of TensorFlow 2.4. The sizes are those after
    the call; `code` has the 8-byte words of SP_PlatformFns that point to code, also past its end.
    """
    if platform_size in _V204_PLATFORM_SIZES or fns_size == _V204_FNS_SIZE:
        return frozenset()
    by_size = _by_sizes(platform_size, fns_size)
    if by_size == _RFC and {word for word in code if word < _FNS_WORDS} == _ALL_COUNTED:
        return frozenset()  # the slots contradict the sizes
    if sizes_decide(platform_size, fns_size):
        return by_size
    used = frozenset(word for word in code if word < _FNS_WORDS)
    by_slots = _SLOT_PATTERNS.get(used, frozenset({HOSTED}))
    return by_size & by_slots or by_size & {HOSTED} or by_size


def sizes_decide(platform_size: int, fns_size: int) -> bool:
    """Whether the sizes alone determine where the slots of SP_PlatformFns lie.

    If not, faulty slots may be those of another dialect: to call one is not safe.
    """
    by_size = _by_sizes(platform_size, fns_size)
    return by_size <= WITH_DEVICE_COUNT or len(by_size) == 1


def refine_by_executor(
    dialects: frozenset[Dialect], executor_size: int, code: frozenset[int]
) -> frozenset[Dialect]:
    """Drop the dialects that a filled SP_StreamExecutor rules out; empty when its size does so."""
    by_size = _with_size("SP_StreamExecutor", executor_size)
    if dialects == _RFC:
        # TensorFlow 2.4 fills SP_DeviceFns, which has few slots, where an executor is expected.
        ends_early = not by_size and 0 < max(code, default=0) < _END_OF_DEVICE_FNS
        if ends_early or _with_size("SP_DeviceFns", executor_size):
            return frozenset()
    if executor_size not in {0, UNWRITTEN_EXECUTOR_SIZE}:
        return dialects & (by_size or _ALL)
    # The words behind slot 30, the last slot of the oldest layout. In memory of the plugin's own,
    # the two words behind an old executor can be the head of another struct, which is no code; what
    # comes after them may be.
    first, second, third, last = (_FIRST_FILL + index in code for index in range(4))
    if first and not second and not third:
        possible = _ALL - _WITH_FILLS
    else:
        possible = _WITH_FILLS if second or third or last else _ALL
    return dialects & possible or dialects


def _by_sizes(platform_size: int, fns_size: int) -> frozenset[Dialect]:
    by_platform = _by_size("SP_Platform", platform_size, UNWRITTEN_PLATFORM_SIZE)
    return by_platform & _by_size("SP_PlatformFns", fns_size, UNWRITTEN_FNS_SIZE)


def _by_size(name: str, size: int, unwritten: int) -> frozenset[Dialect]:
    """Return the dialects in which the struct has this size, as its macro or as `sizeof`.

    A size that no dialect uses is judged as the newest layout: smaller, the missing slots count
    as NULL; larger, a newer header has appended fields.
    """
    return _ALL if size in {0, unwritten} else _with_size(name, size) or frozenset({HOSTED})


def _with_size(name: str, size: int) -> frozenset[Dialect]:
    """Return the dialects in which a struct has this size; all of them share some structs."""
    return frozenset(
        entry.dialect or HOSTED
        for entry in DEVICE_LAYOUTS
        if entry.name == name and size in {entry.struct_size, entry.size}
    )
