"""The structs of a device plugin: lent to it, copied to protected pages, and checked there.

Rules SE-005 to SE-036 are applied to the copies. Each check yields every broken rule, not only the
first; nothing touches plugin memory, except for names, which are read in a way that survives a bad
pointer.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.abi.registered_names import DEVICE_NAME, TENSORFLOW_DEVICE_NAME
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.native.ffi import ffi
from modular_tf.native.host_struct import HostStruct, unpack_field
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.readonly_memory import ReadOnlyCopy, try_read
from modular_tf.native.strings import read_string
from modular_tf.rules import Rule, Violation
from modular_tf.rules import device as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.abi.layouts import Layout
    from modular_tf.loading.device_loader import DeviceRegistration

_CAPACITY = 512
"""Bytes lent for each struct: far more than any dialect writes."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One function pointer of a table, for `modular-tf inspect`; its address is 0 for none.

    `symbol` is the exported one at or below the address, `library` the mapped object around it.
    """

    name: str
    offset: int
    address: int
    symbol: str | None
    library: str | None

    @property
    def present(self) -> bool:
        """Whether the plugin offers the function."""
        return bool(self.address)


class DeviceTable:
    """The host's read-only copy of a struct that a plugin filled. [any thread]

    `announced_size` is the plugin's struct_size, None where it set none; `size` is how many bytes
    of the struct count: fields past them read as 0.
    """

    def __init__(self, layout: Layout, raw: bytes, announced_size: int | None) -> None:
        own_size = announced_size or layout.size  # 0 breaks a rule of its own
        # The RFC's macro for SP_PlatformFns ends before four slots that its readers do set.
        whole = own_size >= (layout.struct_size or layout.size)
        self.layout = layout
        self.announced_size = announced_size
        self.size = layout.size if whole else own_size
        self._copy = ReadOnlyCopy(_cut(layout, raw, self.size))

    @property
    def address(self) -> int:
        """The address of the copy, valid as long as this object lives."""
        return self._copy.address

    @computed_once
    def _raw(self) -> bytes:
        return bytes(self._copy.view())

    def value(self, name: str) -> int:
        """Return the value of a field: a number, or an unchecked address."""
        return unpack_field(self._raw, self.layout.field(name))

    def has(self, name: str) -> bool:
        """Whether a field is there and set at all."""
        return self.layout.has(name, self.size) and self.value(name) != 0

    def in_layout(self, target: Layout) -> DeviceTable:
        """Return a table with the same fields in the layout of another dialect.

        Fields that this table's dialect lacks, or its size leaves out, are 0.
        """
        if target == self.layout:
            return self
        block = bytearray(target.size)
        for field in target.fields:
            if self.layout.has(field.name, self.size):
                own = self.layout.field(field.name)
                block[field.offset : field.end] = self._raw[own.offset : own.end]
        return DeviceTable(target, bytes(block), None)

    def slots(self) -> Iterator[Slot]:
        """Yield every function pointer of the layout, set or not, in order."""
        for field in self.layout.slots:
            address = self.value(field.name)
            owner = address_owner(address) if address else None
            yield Slot(
                field.name,
                field.offset,
                address,
                owner.symbol if owner else None,
                owner.path if owner else None,
            )


def _cut(layout: Layout, raw: bytes, size: int) -> bytes:
    """Return the fields that `size` covers, zeros, and a correct struct_size.

    Fields are taken over one by one, so that padding never carries what was on a stack.
    """
    block = bytearray(layout.size)
    for field in layout.fields:
        if field.end <= size:
            block[field.offset : field.end] = raw[field.offset : field.end]
    header = layout.field("struct_size")
    announced = min(size, layout.struct_size or layout.size)
    block[header.offset : header.end] = announced.to_bytes(header.size, sys.byteorder)
    return bytes(block)


class LentStruct:
    """One struct that is lent to the plugin and collected again.

    The host's memory stays with this object, since the plugin may go on using it. Its struct lies
    `filled_at` there, or in the plugin itself; `raw` has the bytes as they were when collected.
    """

    def __init__(self, layout: Layout, *, unwritten_size: int | None = None) -> None:
        """Lend zeroed memory.

        `layout` is as far as the host writes into it; the plugin's own may be another.
        `unwritten_size` is a struct_size that no dialect uses, so that the host sees whether the
        plugin set one; None hands out the layout's own.
        """
        self._unwritten_size = unwritten_size
        self.memory = HostStruct(
            layout, _CAPACITY, struct_size=unwritten_size or layout.struct_size or layout.size
        )
        self.filled_at = self.memory.address
        self.raw = self.memory.raw()

    @property
    def address(self) -> int:
        """The address of the host's memory."""
        return self.memory.address

    @property
    def size_field(self) -> int:
        """The struct_size in the collected bytes."""
        return unpack_field(self.raw, self.memory.layout.field("struct_size"))

    @property
    def code_words(self) -> frozenset[int]:
        """The numbers of the 8-byte words that point to code, counted from 0.

        In a struct of the plugin's own, what lies past its end is judged as well.
        """
        words = struct.unpack_from(f"={_CAPACITY // 8}Q", self.raw)
        return frozenset(
            index for index, word in enumerate(words) if index > 1 and word and is_executable(word)
        )

    @property
    def is_own(self) -> bool:
        """Whether the plugin replaced the host's memory by a struct of its own."""
        return self.filled_at != self.address

    def collect(self, pointer: int, field: str) -> Iterator[Violation]:
        """Copy the struct that the plugin filled, and yield broken rules.

        `pointer` is what `field`, which pointed to the host's memory, holds now. TensorFlow never
        reads it again; it is followed here, so that a plugin that replaced it is understood.
        """
        self.raw = self.memory.raw()
        if pointer == self.address:
            return
        if not pointer:
            yield Violation(rules.LENT_STRUCTS_FILLED, f"{field} is NULL after the call")
            return
        yield Violation(
            rules.LENT_STRUCTS_FILLED, f"{field} points to a struct of the plugin's own"
        )
        for size in range(_CAPACITY, 0, -8):  # the longest readable run of words
            if (raw := try_read(pointer, size)) is not None:
                self.filled_at, self.raw = pointer, raw.ljust(_CAPACITY, b"\0")
                return
        text = f"{field} is {pointer:#x}, which is not readable memory"
        yield Violation(rules.STRUCTS_READABLE, text)

    def table(self, layout: Layout | None = None) -> DeviceTable:
        """Return the collected bytes as a write-protected table, in the plugin's own layout."""
        size = self.size_field
        announced = None if size == self._unwritten_size else size
        return DeviceTable(layout or self.memory.layout, self.raw, announced)


HOST_VERSION = (0, 0, 1)

_FLAGS = ("supports_unified_memory", "use_bfc_allocator", "force_memory_growth")
_OPTIONAL_FNS = frozenset(
    {
        "create_timer_fns",
        "destroy_timer_fns",
        "create_allocator",
        "destroy_allocator",
        "create_custom_allocator",
        "destroy_custom_allocator",
    }
)
_ALLOCATORS = ("allocator", "custom_allocator")
_TIMER_FNS = ("create_timer_fns", "destroy_timer_fns")
_UNIFIED = ("unified_memory_allocate", "unified_memory_deallocate")
_MEMORY = frozenset(slot.name for slot in layout("SP_AllocatorFns", Dialect.DEVICE_RFC).slots)
_TIMERS = ("create_timer", "destroy_timer", "start_timer", "stop_timer")
_UNCHECKED_COPIES = ("memcpy_dtod", "sync_memcpy_dtod")
_FILLS = ("mem_zero", "memset", "memset32")
_OPTIONAL = frozenset({*_UNIFIED, *_TIMERS, *_UNCHECKED_COPIES, *_FILLS, "block_host_until_done"})
_SIZE_RULES = {
    "SE_PlatformRegistrationParams": rules.PARAMS_SIZE_SET,
    "SP_Platform": rules.PLATFORM_SIZE_SET,
    "SP_PlatformFns": rules.PLATFORM_FNS_SIZE_SET,
    "SP_DeviceFns": rules.DEVICE_FNS_SIZE_SET,
    "SP_StreamExecutor": rules.EXECUTOR_SIZE_SET,
    "SP_Device": rules.DEVICE_SIZE_SET,
}


@dataclass(frozen=True)
class DeviceTables:
    """The accepted registration of a device plugin, on write-protected pages. [any thread]

    The structs that only the host reads are in the newest layout (TF 2.9-2.21), whatever the
    plugin was compiled with: a slot that its dialect lacks is NULL. What is passed back to the
    plugin is in the plugin's own layout.
    """

    plugin: str  # its name for users
    path: str
    dialect: Dialect  # the layout that it was compiled with
    name: str  # of the platform
    device_type: str
    platform: DeviceTable  # in the layout of `dialect`, to be passed back
    platform_fns: DeviceTable
    device_fns: DeviceTable  # empty for the RFC, which has none
    executor: DeviceTable
    given_fns: DeviceTable  # SP_PlatformFns in the layout of `dialect`, with the RFC's allocators
    given_executor: DeviceTable
    warnings: tuple[Violation, ...]
    registration: DeviceRegistration  # keeps the memory that the plugin filled; taken down at last

    @property
    def given(self) -> tuple[DeviceTable, ...]:
        """The tables of functions in the plugin's own layout, for `modular-tf inspect`."""
        no_device_fns = self.dialect is Dialect.DEVICE_RFC
        middle = () if no_device_fns else (self.device_fns,)
        return self.given_fns, *middle, self.given_executor

    @property
    def supports_unified_memory(self) -> bool:
        """Whether unified memory can be allocated; in the RFC each allocator says so."""
        return self.platform.has("supports_unified_memory")

    @property
    def use_bfc_allocator(self) -> bool:
        """Whether the plugin asks the host to cut big allocations; never before TF 2.5."""
        return self.platform.has("use_bfc_allocator")

    @property
    def force_memory_growth(self) -> bool:
        """Whether memory must not be taken all at once; never before TF 2.9."""
        return self.platform.has("force_memory_growth")

    @property
    def has_timers(self) -> bool:
        """Whether it has every function of timers; TensorFlow 2.12 does not load it otherwise."""
        named = ((self.platform_fns, _TIMER_FNS), (self.executor, _TIMERS))
        return all(table.has(name) for table, names in named for name in names)

    @property
    def visible_device_count(self) -> int | None:
        """How many devices SP_Platform announces; None where get_device_count says so."""
        return _optional_value(self.platform, "visible_device_count")


def allocator_of(fns: DeviceTable) -> str | None:
    """Return which of the RFC's allocators serves all memory (SE-034: at most one), or None."""
    pairs = ((name, f"create_{name}", f"destroy_{name}") for name in _ALLOCATORS)
    return next((n for n, create, destroy in pairs if fns.has(create) and fns.has(destroy)), None)


def read_name(table: DeviceTable, field: str) -> str | None:
    """Return the string that a field points to; None if it is NULL or cannot be read."""
    address = table.value(field)
    return read_string(ffi.cast("char *", address)) if address else None


def _optional_value(table: DeviceTable, field: str) -> int | None:
    return table.value(field) if table.layout.has(field, table.layout.size) else None


def check_params(params: DeviceTable) -> Iterator[Violation]:
    """Check SE_PlatformRegistrationParams, the pointers to structs apart."""
    yield from _check_size(params)
    found = tuple(params.value(f"{part}_version") for part in ("major", "minor", "patch"))
    if found != HOST_VERSION:
        yield Violation(
            rules.VERSION_OF_HOST, f"version: found {_dotted(found)}, host {_dotted(HOST_VERSION)}"
        )
    for broken, slot in (
        (rules.DESTROY_PLATFORM_SET, "destroy_platform"),
        (rules.DESTROY_PLATFORM_FNS_SET, "destroy_platform_fns"),
    ):
        if not params.has(slot):
            yield rules.null_field(broken, params.layout.name, slot)
    yield from check_code(params)


def in_words_of_rfc(violation: Violation) -> Violation:
    """Return a broken rule on SE_PlatformRegistrationParams as a plugin of the RFC breaks it.

    The check of the parameters comes before the layout is known, and only later layouts demand
    functions that destroy the platform.
    """
    demanded_later = violation.rule in {rules.DESTROY_PLATFORM_SET, rules.DESTROY_PLATFORM_FNS_SET}
    return Violation(rules.DEMANDED_LATER, violation.message) if demanded_later else violation


def check_platform(
    platform: DeviceTable, name: str | None, device_type: str | None
) -> Iterator[Violation]:
    """Check SP_Platform: its size, its name and type as `read_name` gave them, and its flags."""
    yield from _check_size(platform)
    for field, text, unset, malformed in (
        ("name", name, rules.PLATFORM_NAME_READABLE, rules.PLATFORM_NAME_SPELLING),
        ("type", device_type, rules.DEVICE_TYPE_READABLE, rules.DEVICE_TYPE_SPELLING),
    ):
        if text is None:
            found = "not a readable string" if platform.value(field) else "NULL"
            yield Violation(unset, f"SP_Platform.{field} is {found}")
        elif not TENSORFLOW_DEVICE_NAME.fullmatch(text):
            tolerated = _is_rfc(platform) and DEVICE_NAME.fullmatch(text)
            yield Violation(
                rules.DEMANDED_LATER if tolerated else malformed,
                f"SP_Platform.{field} is {text!r}, expected {TENSORFLOW_DEVICE_NAME.pattern}",
            )
    for flag in _FLAGS:
        value = _optional_value(platform, flag)
        if value not in {None, 0, 1}:
            yield Violation(rules.FLAGS_BOOLEAN, f"SP_Platform.{flag} is {value}, expected 0 or 1")


def check_platform_fns(fns: DeviceTable) -> Iterator[Violation]:
    """Check SP_PlatformFns in the plugin's own layout."""
    yield from _check_size(fns)
    missing = [slot.name for slot in fns.layout.slots if not fns.has(slot.name)]
    for name in missing:
        if name != "get_device_count" and name not in _OPTIONAL_FNS:
            yield rules.null_field(rules.PLATFORM_FNS_SET, "SP_PlatformFns", name)
    if "get_device_count" in missing:
        yield rules.null_field(rules.DEVICE_COUNT_SET, "SP_PlatformFns", "get_device_count")
    yield from _check_all_or_none(rules.TIMER_FNS_PAIRED, fns, _TIMER_FNS)
    # the RFC's two pairs; other dialects have none
    if all(fns.has(f"create_{name}") for name in _ALLOCATORS):
        text = "create_allocator and create_custom_allocator are both set"
        yield Violation(rules.ONE_ALLOCATOR, text)
    for name in _ALLOCATORS:
        if fns.has(f"create_{name}") != fns.has(f"destroy_{name}"):
            text = f"SP_PlatformFns has one of create_{name}, destroy_{name}"
            yield Violation(rules.ALLOCATOR_PAIRED, text)
    yield from check_code(fns)


def check_device_fns(fns: DeviceTable) -> Iterator[Violation]:
    """Check SP_DeviceFns, whose slots are all optional."""
    yield from _check_size(fns)
    yield from check_code(fns)


def check_executor(
    executor: DeviceTable, *, unified_memory: bool, own_allocator: bool = False
) -> Iterator[Violation]:
    """Check SP_StreamExecutor in its own layout; an own allocator replaces its memory slots."""
    yield from _check_size(executor)
    dispensable = _OPTIONAL | _MEMORY if own_allocator else _OPTIONAL
    slots = [slot.name for slot in executor.layout.slots if slot.name not in dispensable]
    missing = [name for name in slots if not executor.has(name)]
    if missing and _is_rfc(executor):
        yield Violation(rules.DEMANDED_LATER, f"NULL in SP_StreamExecutor: {', '.join(missing)}")
    else:
        for name in missing:
            yield rules.null_field(rules.EXECUTOR_SLOTS_SET, "SP_StreamExecutor", name)
    for name in _UNIFIED:
        if unified_memory and not executor.has(name):
            though = "supports_unified_memory is set"
            yield rules.null_field(
                rules.UNIFIED_MEMORY_PAIRED, "SP_StreamExecutor", name, though=though
            )
    for name in _UNCHECKED_COPIES:
        if not executor.has(name):
            yield rules.null_field(rules.DEVICE_COPIES_SET, "SP_StreamExecutor", name)
    for slot in executor.layout.slots:
        if slot.name in _FILLS and not executor.has(slot.name):
            yield rules.null_field(rules.FILLS_SET, "SP_StreamExecutor", slot.name)
    yield from _check_all_or_none(rules.TIMERS_COMPLETE, executor, _TIMERS)
    yield from check_code(executor)


def check_device(device: DeviceTable) -> Iterator[Violation]:
    """Check the size of an SP_Device, before its strings are read."""
    yield from _check_size(device)


def check_code(table: DeviceTable) -> Iterator[Violation]:
    """Check that every slot that is set points to executable code."""
    for slot in table.layout.slots:
        address = table.value(slot.name)
        if address and not is_executable(address):
            where = f"{table.layout.name}.{slot.name}"
            yield Violation(
                rules.DEVICE_SLOTS_ARE_CODE, f"{where} is {address:#x}, where there is no code"
            )


def _is_rfc(table: DeviceTable) -> bool:
    return table.layout.dialect is Dialect.DEVICE_RFC


def _check_size(table: DeviceTable) -> Iterator[Violation]:
    """Check struct_size against the plugin's own layout; an unset one is the host's."""
    name, found, expected = table.layout.name, table.announced_size, table.layout.struct_size or 0
    if found is None:
        return
    text = f"{name}.struct_size: found {found}, expected {expected}"
    if found == 0:
        yield Violation(_SIZE_RULES[name], text)
    elif found < expected:
        yield Violation(rules.STRUCT_COMPLETE, text)
    elif found > table.layout.size:
        yield Violation(rules.STRUCT_KNOWN_WHOLE, text)


def _check_all_or_none(
    broken: Rule, table: DeviceTable, names: tuple[str, ...]
) -> Iterator[Violation]:
    missing = [name for name in names if not table.has(name)]
    if missing and len(missing) < len(names):
        struct, rest = table.layout.name, ", ".join(missing)
        yield Violation(broken, f"{struct}: {rest} NULL, the others of {', '.join(names)} set")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
