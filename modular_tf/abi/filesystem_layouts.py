"""The structs of the filesystem interface (filesystem-abi §1 and §2, plugins-in-the-wild §1)."""

from __future__ import annotations

from modular_tf.abi.layout import (
    Dialect,
    Field,
    Kind,
    Layout,
    boolean,
    functions,
    pointer,
    signed,
    unsigned,
)

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

RANDOM_ACCESS_FILE_SLOTS = tuple(slot.name for slot in RANDOM_ACCESS_FILE_OPS.slots)
WRITABLE_FILE_SLOTS = tuple(slot.name for slot in WRITABLE_FILE_OPS.slots)
READ_ONLY_MEMORY_REGION_SLOTS = tuple(slot.name for slot in READ_ONLY_MEMORY_REGION_OPS.slots)

V222_TO_V221_SLOT = tuple(FILESYSTEM_SLOTS.index(name) for name in FILESYSTEM_SLOTS_V222)
"""For each slot of a 216-byte table, the index of the same op in the 264-byte order."""


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
