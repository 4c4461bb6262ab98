"""Rules of filesystem registration: what `TF_InitPlugin` must leave behind."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity, Violation

_HEADER = "filesystem.h"
_ABORTS = "TensorFlow crashes on it; here the plugin is refused."
_REFUSED = "TensorFlow refuses it with FAILED_PRECONDITION; so do we."

ALLOCATE_SET = Rule(
    "FS-001",
    "TF_FilesystemPluginInfo.plugin_memory_allocate is set.",
    _REFUSED,
    "Set it to a function like malloc before TF_InitPlugin returns.",
    _HEADER,
)
FREE_SET = Rule(
    "FS-002",
    "TF_FilesystemPluginInfo.plugin_memory_free is set.",
    _REFUSED,
    "Set it to the function that frees what plugin_memory_allocate gave.",
    _HEADER,
)
OPS_READABLE = Rule(
    "FS-003",
    "TF_FilesystemPluginInfo.ops points to num_schemes readable entries.",
    _ABORTS,
    "Allocate num_schemes entries of TF_FilesystemPluginOps with plugin_memory_allocate.",
    _HEADER,
)
SCHEMES_BOUNDED = Rule(
    "FS-004",
    "num_schemes is at most 1024.",
    "A larger number is an uninitialised field; the plugin is refused.",
    "Set num_schemes to the number of schemes that the plugin serves.",
)
SCHEMES_OFFERED = Rule(
    "FS-005",
    "A filesystem plugin serves at least one scheme.",
    "The plugin loads and serves nothing.",
    "Set num_schemes and ops in TF_InitPlugin.",
    _HEADER,
    Severity.WARNING,
)
SCHEME_READABLE = Rule(
    "FS-006",
    "The scheme is a readable, NUL-terminated string.",
    "TensorFlow answers NULL with INVALID_ARGUMENT; the registration is refused.",
    "Copy the scheme into memory from plugin_memory_allocate.",
    _HEADER,
)
SCHEME_SPELLING = Rule(
    "FS-007",
    'A scheme is "" or a letter and then 1 to 999 letters, digits or dots.',
    "No URI could ever reach it: TensorFlow would send its paths to the local disk.",
    "Choose a scheme that URIs can name, such as my.store.",
    "TensorFlow's URI parser",
)
TABLE_SET = Rule(
    "FS-008",
    "The filesystem table is set.",
    _REFUSED,
    "Allocate a TF_FilesystemOps and fill it.",
    _HEADER,
)
ABI_NUMBER = Rule(
    "FS-009",
    "The ABI number of each table that is set is the host's.",
    _REFUSED,
    "Rebuild the plugin, and call TF_SetFilesystemVersionMetadata for each scheme.",
    _HEADER,
)
API_NUMBER = Rule(
    "FS-010",
    "The API number of each table that is set is the host's.",
    "The plugin was built from other headers; what it added or lacks is not checked.",
    "Rebuild the plugin with the headers of this host.",
    _HEADER,
    Severity.WARNING,
)
TABLE_SIZE = Rule(
    "FS-011",
    "A table's size is a multiple of 8 and covers its required slots.",
    "TensorFlow reads past the table and crashes; here the registration is refused.",
    "Call TF_SetFilesystemVersionMetadata, which stores the sizes.",
    _HEADER,
)
TABLE_READABLE = Rule(
    "FS-012",
    "A table's memory is readable over its whole size.",
    _ABORTS,
    "Allocate each table with its full size by plugin_memory_allocate.",
    _HEADER,
)
INIT_AND_CLEANUP_SET = Rule(
    "FS-013",
    "TF_FilesystemOps.init and .cleanup are set.",
    _REFUSED,
    "Provide both; they may do nothing.",
    _HEADER,
)
FILE_SLOTS_SET = Rule(
    "FS-014",
    "A table of files or regions has all its required slots.",
    _REFUSED,
    "Provide cleanup in each table, and data and length for memory regions.",
    _HEADER,
)
OPENER_HAS_TABLE = Rule(
    "FS-015",
    "A function that opens files comes with the table of those files.",
    _REFUSED,
    "Set the table that belongs to the opener, or leave the opener NULL.",
    _HEADER,
)
SLOTS_ARE_CODE = Rule(
    "FS-016",
    "Every slot points to executable code.",
    "Calling it would crash the process; the registration is refused.",
    "Zero each table before filling it, and give its true size.",
)
SCHEME_NAMED_ONCE = Rule(
    "FS-017",
    "A plugin names each scheme once.",
    "TensorFlow answers the second with ALREADY_EXISTS; the first one serves.",
    "Remove the second entry.",
    "TensorFlow's registry",
)
SCHEME_FREE = Rule(
    "FS-018",
    "No other plugin serves the scheme.",
    "TensorFlow answers ALREADY_EXISTS; here the plugin of higher precedence serves. Plain local "
    "paths, `file` and `ram` stay with the plugins that come with this package.",
    "Pin the scheme to one plugin in the configuration (scheme_pins), or disable the other.",
    "TensorFlow's registry",
)
SCHEME_INIT_SUCCEEDS = Rule(
    "FS-019",
    "TF_FilesystemOps.init succeeds.",
    "The scheme is not registered; the plugin's own message says why.",
    "See the plugin's documentation for the environment it needs.",
    _HEADER,
)
FILES_USABLE = Rule(
    "FS-020",
    "Files that can be opened can also be used: read, append and close are set.",
    "The file opens, and every use of it is UNIMPLEMENTED.",
    "Provide read for readers, append and close for writers.",
    _HEADER,
    Severity.WARNING,
)
TABLE_KNOWN_WHOLE = Rule(
    "FS-021",
    "A table is not larger than the host knows.",
    "Slots past the known ones are ignored.",
    "None needed; a newer host may use them.",
    "struct-size rule",
    Severity.WARNING,
)
BLOCKS_ALLOCATED = Rule(
    "FS-022",
    "Scheme, tables and the ops array are blocks of plugin_memory_allocate, each its own.",
    "TensorFlow frees them and crashes; here what cannot have been allocated is not freed.",
    "Allocate each with plugin_memory_allocate, and copy static tables into such memory.",
    _HEADER,
    Severity.WARNING,
)


def scheme_taken(scheme: str, plugin: str, owner: str, how: str = "is taken by") -> Violation:
    """Return the violation of a plugin that does not get a scheme, since its owner has it."""
    return Violation(SCHEME_FREE, f"scheme {scheme!r} of {plugin} {how} {owner}", scheme=scheme)


def scheme_pinned(scheme: str, plugin: str, pinned: str, *, where: str) -> Violation:
    """Return the violation of a plugin that does not get a scheme, since the user gave it away."""
    text = f"scheme {scheme!r} of {plugin} is pinned to {pinned!r} in {where}"
    return Violation(SCHEME_FREE, text, scheme=scheme)


def scheme_configured(scheme: str, plugin: str, *, where: str) -> Violation:
    """Return the violation of a plugin that does not get a scheme, since the user named another."""
    text = f"scheme {scheme!r} of {plugin} is given to another by [filesystems] in {where}"
    remedy = f"To give it to {plugin}, remove {scheme!r} from [filesystems]."
    return Violation(SCHEME_FREE, text, remedy=remedy, scheme=scheme)


def scheme_reserved(scheme: str, plugin: str, owner: str) -> Violation:
    """Return the violation of a plugin that nobody has given a scheme of a bundled plugin."""
    return Violation(
        SCHEME_FREE,
        f"scheme {scheme!r} of {plugin} belongs to {owner}, which comes with this package",
        remedy=f"To give it to {plugin}, pin it in the configuration: "
        f'scheme_pins = {{ "{scheme}" = "{plugin}" }}',
        scheme=scheme,
    )


def scheme_misspelt(field: str, scheme: str) -> Violation:
    """Return the violation of a scheme that no URI can name."""
    expected = "expected a letter, then 1 to 999 letters, digits or dots"
    message = f"{field}: {expected}, found {scheme!r}, which no URI can name"
    return Violation(SCHEME_SPELLING, message, scheme=scheme)


def not_code(field: str, address: int) -> Violation:
    """Return the violation of a field that holds an address where there is no code."""
    message = f"{field}: expected a function, found {address:#x}, which is not code"
    return Violation(SLOTS_ARE_CODE, message)
