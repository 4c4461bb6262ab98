"""The memory layouts of the C structs of the plugin interfaces: names, offsets and sizes.

All numbers are bytes on LP64 (Linux on x86-64 and aarch64). The C headers in `modular_tf/include`
declare the newest common form of each; a test compiles them against these numbers, so that neither
side can drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

POINTER_SIZE = 8


class Kind(Enum):
    """The kind of value in a field, as a reader of its bytes needs it."""

    POINTER = "pointer"
    """To data: a string, a struct, or something only its owner understands."""

    FUNCTION = "function"
    """To code; such a field is a *slot*, and `None`/NULL means "not offered"."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOLEAN = "boolean"
    """One byte, 0 or 1 (`bool` or `TF_Bool`)."""

    REAL = "real"
    """A C `double`."""

    STRUCT = "struct"
    """A struct or union by value."""


class Dialect(Enum):
    """The generations of the two interfaces. Their version numbers never moved, so sizes tell.

    Sources: plugins-in-the-wild §1 (filesystem), device-abi §A1 (device).
    """

    FILESYSTEM_V221 = "filesystem-2.21"
    """TensorFlow 2.3 to 2.21: 33 slots; older tables are a shorter front part of it."""

    FILESYSTEM_V222 = "filesystem-2.22"
    """TensorFlow 2.22: the six transaction slots are gone from the middle."""

    DEVICE_RFC = "device-rfc-2020-09-08"
    DEVICE_V205 = "device-2.5"
    """TensorFlow 2.5 and 2.6."""
    DEVICE_V207 = "device-2.7"
    """TensorFlow 2.7 and 2.8."""
    DEVICE_V209 = "device-2.9"
    """TensorFlow 2.9 to 2.21."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    offset: int
    size: int
    kind: Kind

    @property
    def end(self) -> int:
        """Return the offset of the first byte behind the field."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Layout:
    """One struct in one dialect.

    Attributes:
        name: The C name, the same in every dialect.
        dialect: Whose layout this is; `None` when all dialects of the interface share it.
        size: `sizeof`.
        fields: In order of offset.
        struct_size: What `*_STRUCT_SIZE` says, for structs that announce their own size: usually
            the end of the last field, without the padding behind it. `None` for the others.
    """

    name: str
    dialect: Dialect | None
    size: int
    fields: tuple[Field, ...]
    struct_size: int | None = None

    @property
    def slots(self) -> tuple[Field, ...]:
        """Return the function pointers, in order."""
        return tuple(field for field in self.fields if field.kind is Kind.FUNCTION)

    def field(self, name: str) -> Field:
        """Return the field of that name.

        Raises:
            KeyError: The struct has no such field in this dialect.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name!r} in {self.dialect or 'any dialect'}")

    def has(self, name: str, size: int) -> bool:
        """Return whether a struct of `size` bytes reaches to the end of the field."""
        return any(field.name == name and field.end <= size for field in self.fields)


def pointer(name: str, offset: int) -> Field:
    """Return a data pointer."""
    return Field(name, offset, POINTER_SIZE, Kind.POINTER)


def signed(name: str, offset: int, size: int = 4) -> Field:
    """Return a signed integer, `int` unless said otherwise."""
    return Field(name, offset, size, Kind.SIGNED)


def unsigned(name: str, offset: int, size: int = 8) -> Field:
    """Return an unsigned integer, `size_t` unless said otherwise."""
    return Field(name, offset, size, Kind.UNSIGNED)


def boolean(name: str, offset: int) -> Field:
    """Return a one-byte truth value."""
    return Field(name, offset, 1, Kind.BOOLEAN)


def functions(names: str, offset: int = 0) -> tuple[Field, ...]:
    """Return a run of slots without gaps, from a blank-separated list of names."""
    return tuple(
        Field(name, offset + POINTER_SIZE * index, POINTER_SIZE, Kind.FUNCTION)
        for index, name in enumerate(names.split())
    )


def sized_header() -> tuple[Field, ...]:
    """Return the first two fields of every struct of the device interface but one."""
    return unsigned("struct_size", 0), pointer("ext", 8)


# -- the filesystem interface (filesystem-abi §1 and §2, plugins-in-the-wild §1) -------------------

_FRONT = """
    init cleanup
    new_random_access_file new_writable_file new_appendable_file
    new_read_only_memory_region_from_file
    create_dir recursively_create_dir delete_file delete_dir delete_recursively
    rename_file copy_file path_exists paths_exist stat is_directory get_file_size
    translate_name get_children get_matching_paths flush_caches
"""
_TRANSACTIONS = """
    start_transaction end_transaction add_to_transaction get_transaction_for_path
    get_or_start_transaction_for_path decode_transaction_token
"""
_CONFIGURATION = """
    get_filesystem_configuration set_filesystem_configuration
    get_filesystem_configuration_option set_filesystem_configuration_option
    get_filesystem_configuration_keys
"""

FILESYSTEM_OPS = Layout(
    "TF_FilesystemOps",
    Dialect.FILESYSTEM_V221,
    264,
    functions(_FRONT + _TRANSACTIONS + _CONFIGURATION),
)
FILESYSTEM_OPS_V222 = Layout(
    "TF_FilesystemOps", Dialect.FILESYSTEM_V222, 216, functions(_FRONT + _CONFIGURATION)
)
RANDOM_ACCESS_FILE_OPS = Layout("TF_RandomAccessFileOps", None, 16, functions("cleanup read"))
WRITABLE_FILE_OPS = Layout(
    "TF_WritableFileOps", None, 48, functions("cleanup append tell flush sync close")
)
READ_ONLY_MEMORY_REGION_OPS = Layout(
    "TF_ReadOnlyMemoryRegionOps", None, 24, functions("cleanup data length")
)

FILESYSTEM_SLOTS = tuple(slot.name for slot in FILESYSTEM_OPS.slots)
"""Names of the 33 slots, in order; slot `i` lies at offset `8 * i`. The host's own order."""

FILESYSTEM_SLOTS_V222 = tuple(slot.name for slot in FILESYSTEM_OPS_V222.slots)
"""Names of the 27 slots of a 216-byte table, in order."""


def filesystem_ops_layout(table_size: int) -> Layout:
    """Return the layout that a table of this many bytes follows.

    216 bytes is the only size that TensorFlow 2.22 writes and no older one ever wrote (176, 224,
    264). Every other size is a front part, or a superset, of the 264-byte layout.
    """
    return FILESYSTEM_OPS_V222 if table_size == FILESYSTEM_OPS_V222.size else FILESYSTEM_OPS


def _table_reference(name: str, offset: int) -> tuple[Field, ...]:
    """Return the four fields by which TF_FilesystemPluginOps announces one table."""
    return (
        signed(f"{name}_abi", offset),
        signed(f"{name}_api", offset + 4),
        unsigned(f"{name}_size", offset + 8),
        pointer(name, offset + 16),
    )


PLUGIN_OPS = Layout(
    "TF_FilesystemPluginOps",
    None,
    104,
    (
        pointer("scheme", 0),
        *_table_reference("filesystem_ops", 8),
        *_table_reference("random_access_file_ops", 32),
        *_table_reference("writable_file_ops", 56),
        *_table_reference("read_only_memory_region_ops", 80),
    ),
)
PLUGIN_INFO = Layout(
    "TF_FilesystemPluginInfo",
    None,
    32,
    (
        unsigned("num_schemes", 0),
        pointer("ops", 8),
        *functions("plugin_memory_allocate plugin_memory_free", 16),
    ),
)

FILESYSTEM_LAYOUTS = (
    Layout("TF_RandomAccessFile", None, 8, (pointer("plugin_file", 0),)),
    Layout("TF_WritableFile", None, 8, (pointer("plugin_file", 0),)),
    Layout("TF_ReadOnlyMemoryRegion", None, 8, (pointer("plugin_memory_region", 0),)),
    Layout("TF_Filesystem", None, 8, (pointer("plugin_filesystem", 0),)),
    Layout("TF_TransactionToken", None, 16, (pointer("token", 0), pointer("owner", 8))),
    Layout(
        "TF_Filesystem_Option_Value_Union",
        None,
        16,
        (
            signed("int_val", 0, 8),
            Field("real_val", 0, 8, Kind.REAL),
            Field("buffer_val", 0, 16, Kind.STRUCT),
            pointer("buffer_val.buf", 0),
            signed("buffer_val.buf_length", 8),
        ),
    ),
    Layout(
        "TF_Filesystem_Option_Value",
        None,
        16,
        (signed("type_tag", 0), signed("num_values", 4), pointer("values", 8)),
    ),
    Layout(
        "TF_Filesystem_Option",
        None,
        32,
        (
            pointer("name", 0),
            pointer("description", 8),
            signed("per_file", 16),
            pointer("value", 24),
        ),
    ),
    Layout(
        "TF_FileStatistics",
        None,
        24,
        (signed("length", 0, 8), signed("mtime_nsec", 8, 8), boolean("is_directory", 16)),
    ),
    Layout(
        "TF_ThreadOptions",
        None,
        24,
        (unsigned("stack_size", 0), unsigned("guard_size", 8), signed("numa_node", 16)),
    ),
    RANDOM_ACCESS_FILE_OPS,
    WRITABLE_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    FILESYSTEM_OPS,
    FILESYSTEM_OPS_V222,
    PLUGIN_OPS,
    PLUGIN_INFO,
)


# -- the device interface, in all four dialects (device-abi §A1 to §A5). A struct that never changed
# stands once, with dialect `None`; the headers that we ship declare `Dialect.DEVICE_V209` --------

_RFC, _V205, _V207, _V209 = (
    Dialect.DEVICE_RFC,
    Dialect.DEVICE_V205,
    Dialect.DEVICE_V207,
    Dialect.DEVICE_V209,
)


def _sized(
    name: str,
    dialect: Dialect | None,
    size: int,
    *fields: Field,
    struct_size: int | None = None,
) -> Layout:
    """Return a struct that starts with struct_size and ext.

    Its macro says where its last field ends, unless `struct_size` says otherwise.
    """
    return Layout(name, dialect, size, (*sized_header(), *fields), struct_size or fields[-1].end)


_EXECUTOR_FRONT = """
    allocate deallocate host_memory_allocate host_memory_deallocate
    unified_memory_allocate unified_memory_deallocate get_allocator_stats device_memory_usage
    create_stream destroy_stream create_stream_dependency get_stream_status
    create_event destroy_event get_event_status record_event wait_for_event
    create_timer destroy_timer start_timer stop_timer
    memcpy_dtoh memcpy_htod memcpy_dtod sync_memcpy_dtoh sync_memcpy_htod sync_memcpy_dtod
    block_host_for_event block_host_until_done synchronize_all_activity
"""
_EXECUTOR_264 = functions(_EXECUTOR_FRONT + "host_callback", 16)
_EXECUTOR_288 = functions(_EXECUTOR_FRONT + "mem_zero memset memset32 host_callback", 16)

_NAME_AND_TYPE = (pointer("name", 16), pointer("type", 24))
_PLATFORM_FLAGS = (
    boolean("supports_unified_memory", 32),
    boolean("use_bfc_allocator", 33),
    boolean("force_memory_growth", 34),
)

_DEVICE_FRONT = (signed("ordinal", 16), pointer("device_handle", 24))
_DEVICE_NAMES = (
    pointer("hardware_name", 32),
    pointer("device_vendor", 40),
    pointer("pci_bus_id", 48),
)

_CREATE_AND_DESTROY = """
    create_device destroy_device create_device_fns destroy_device_fns
    create_stream_executor destroy_stream_executor create_timer_fns destroy_timer_fns
"""
_RFC_PLATFORM_FUNCTIONS = """
    create_device destroy_device create_stream_executor destroy_stream_executor
    create_timer_fns destroy_timer_fns
    create_allocator destroy_allocator create_custom_allocator destroy_custom_allocator
"""

_PLATFORMS = (
    _sized("SP_Platform", _RFC, 40, *_NAME_AND_TYPE, unsigned("visible_device_count", 32)),
    _sized("SP_Platform", _V205, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS[:2]),
    _sized("SP_Platform", _V207, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS[:2]),
    _sized("SP_Platform", _V209, 40, *_NAME_AND_TYPE, *_PLATFORM_FLAGS),
)
_PLATFORM_FNS = (
    # The RFC's macro stops at destroy_timer_fns although four more slots follow.
    _sized("SP_PlatformFns", _RFC, 96, *functions(_RFC_PLATFORM_FUNCTIONS, 16), struct_size=64),
    *(
        _sized(
            "SP_PlatformFns",
            dialect,
            88,
            *functions("get_device_count" + _CREATE_AND_DESTROY, 16),
        )
        for dialect in (_V205, _V207, _V209)
    ),
)
_EXECUTORS = (
    *(_sized("SP_StreamExecutor", d, 264, *_EXECUTOR_264) for d in (_RFC, _V205)),
    *(_sized("SP_StreamExecutor", d, 288, *_EXECUTOR_288) for d in (_V207, _V209)),
)
_DEVICES = (
    _sized("SP_Device", _RFC, 32, *_DEVICE_FRONT),
    *(
        _sized("SP_Device", dialect, 56, *_DEVICE_FRONT, *_DEVICE_NAMES)
        for dialect in (_V205, _V207, _V209)
    ),
)
_ALLOCATOR_STATS = Layout(
    "SP_AllocatorStats",
    None,
    96,
    (
        unsigned("struct_size", 0),
        signed("num_allocs", 8, 8),
        signed("bytes_in_use", 16, 8),
        signed("peak_bytes_in_use", 24, 8),
        signed("largest_alloc_size", 32, 8),
        signed("has_bytes_limit", 40, 1),
        signed("bytes_limit", 48, 8),
        signed("bytes_reserved", 56, 8),
        signed("peak_bytes_reserved", 64, 8),
        signed("has_bytes_reservable_limit", 72, 1),
        signed("bytes_reservable_limit", 80, 8),
        signed("largest_free_block_bytes", 88, 8),
    ),
    struct_size=96,
)
_REGISTRATION = _sized(
    "SE_PlatformRegistrationParams",
    None,
    64,
    signed("major_version", 16),
    signed("minor_version", 20),
    signed("patch_version", 24),
    pointer("platform", 32),
    pointer("platform_fns", 40),
    *functions("destroy_platform destroy_platform_fns", 48),
)
_SHARED = (
    _sized(
        "SP_DeviceMemoryBase",
        None,
        40,
        pointer("opaque", 16),
        unsigned("size", 24),
        unsigned("payload", 32),
    ),
    _sized("SP_TimerFns", None, 24, *functions("nanoseconds", 16)),
    _sized("SE_CreateDeviceParams", None, 32, signed("ordinal", 16), pointer("device", 24)),
    _sized("SE_CreateStreamExecutorParams", None, 24, pointer("stream_executor", 16)),
    # Not in the RFC; the same ever since.
    _sized("SE_CreateDeviceFnsParams", None, 24, pointer("device_fns", 16)),
    _sized(
        "SP_DeviceFns", None, 40, *functions("get_numa_node get_memory_bandwidth get_gflops", 16)
    ),
)
_RFC_ALLOCATORS = (
    _sized("SP_Allocator", _RFC, 24, boolean("supports_unified_memory", 16)),
    _sized(
        "SP_AllocatorFns",
        _RFC,
        80,
        *functions(" ".join(_EXECUTOR_FRONT.split()[:8]), 16),
    ),
    Layout("SP_CustomAllocator", _RFC, 16, sized_header(), struct_size=16),
    _sized(
        "SP_CustomAllocatorFns",
        _RFC,
        64,
        *functions(
            "allocate_raw deallocate_raw host_allocate_raw host_deallocate_raw"
            " get_allocator_stats device_memory_usage",
            16,
        ),
    ),
    _sized(
        "SE_CreateAllocatorParams",
        _RFC,
        32,
        pointer("allocator", 16),
        pointer("allocator_fns", 24),
    ),
    _sized(
        "SE_CreateCustomAllocatorParams",
        _RFC,
        32,
        pointer("custom_allocator", 16),
        pointer("custom_allocator_fns", 24),
    ),
)

DEVICE_LAYOUTS = (
    *_PLATFORMS,
    *_PLATFORM_FNS,
    *_EXECUTORS,
    *_DEVICES,
    _ALLOCATOR_STATS,
    _REGISTRATION,
    *_SHARED,
    *_RFC_ALLOCATORS,
)

LAYOUTS: Mapping[tuple[str, Dialect | None], Layout] = MappingProxyType(
    {(layout.name, layout.dialect): layout for layout in (*FILESYSTEM_LAYOUTS, *DEVICE_LAYOUTS)}
)
"""All layouts, by C name and dialect; `None` for a struct that all dialects share."""


def layout(name: str, dialect: Dialect | None = None) -> Layout:
    """Return a struct's layout in a dialect, or the one that all dialects share.

    Raises:
        KeyError: No such struct, or it does not exist in that dialect.
    """
    found = LAYOUTS.get((name, dialect)) or LAYOUTS.get((name, None))
    if found is None:
        known = sorted(d.value for struct, d in LAYOUTS if struct == name and d is not None)
        raise KeyError(f"no layout of {name!r} for {dialect}; known dialects: {known}")
    return found
