"""Rules of what `TF_InitPlugin` does and leaves, beyond those that the loader refuses by."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"
_OBSERVED = "TensorFlow 2.21, observed"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-105",
        "TF_InitPlugin writes nothing beside the 32 bytes of TF_FilesystemPluginInfo.",
        "It overwrites the host's stack, which crashes later and elsewhere.",
        "Build the plugin with the header of this interface; do not append fields.",
        _HEADER,
    ),
    Rule(
        "FS-106",
        "TF_InitPlugin can be called again, and leaves the same again.",
        "TensorFlow calls it once per registration of the file; what differs is not expected.",
        "Keep no state in TF_InitPlugin: allocate and fill everything in each call.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "FS-108",
        "plugin_memory_allocate gives usable memory, and plugin_memory_free takes it, or NULL.",
        "The host's own calls to them crash or run out of memory.",
        "Use malloc and free, or functions that behave like them.",
        _HEADER,
    ),
    Rule(
        "FS-111",
        "A scheme has no upper case letters.",
        "Lookups are case-sensitive: users who write it in lower case do not reach it.",
        "Register the scheme in lower case.",
        _OBSERVED,
        Severity.NOTE,
    ),
    Rule(
        "FS-113",
        "A scheme is none that TensorFlow brings itself.",
        "TensorFlow answers the registration with ALREADY_EXISTS and keeps its own filesystem; "
        "here the plugin serves.",
        "To be of use in TensorFlow as well, choose another scheme.",
        _OBSERVED,
        Severity.NOTE,
    ),
    Rule(
        "FS-114",
        "Either all schemes of a plugin can be registered, or none.",
        "The valid schemes work, but TensorFlow's registration of the plugin reports an error.",
        "Fill the tables of each scheme in the same way.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "FS-116",
        "The version numbers of tables that are not there are 0.",
        "No host reads them; it shows that the entry was not zeroed.",
        "Zero the entry, and call TF_SetFilesystemVersionMetadata.",
        _HEADER,
        Severity.NOTE,
    ),
    Rule(
        "FS-118",
        "The size of each table that is there is set.",
        "TensorFlow copies nothing of the table and crashes; here the registration is refused.",
        "Call TF_SetFilesystemVersionMetadata for each scheme.",
        _HEADER,
    ),
    Rule(
        "FS-119",
        "TF_FilesystemOps has the size of the host's header.",
        "What the plugin's table is too short for counts as NULL.",
        "Build the plugin with newer headers, if it is to offer what these have more.",
        "struct-size rule",
        Severity.NOTE,
    ),
    Rule(
        "FS-122",
        "A table of files or regions is used by a function that opens such.",
        "No host ever calls the table's functions.",
        "Set the function that opens, or leave the table NULL.",
        _HEADER,
        Severity.NOTE,
    ),
    Rule(
        "FS-124",
        "For each operation that is NULL, the host's default has the operations that it needs.",
        "The operation is UNIMPLEMENTED, in TensorFlow as well.",
        "Provide the operation, or those that the default is made of.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "FS-126",
        "The plugin does not free what it has handed over.",
        "The host has freed it: freeing it twice crashes.",
        "Keep no pointers to schemes, tables and the ops array.",
        _HEADER,
    ),
    Rule(
        "FS-127",
        "The plugin works after its own tables are overwritten.",
        "The host frees them after copying: what still reads them crashes, sooner or later.",
        "Let functions call each other by name, not through the registered tables.",
        _HEADER,
    ),
    Rule(
        "FS-128",
        "The plugin does not write to what it has handed over.",
        "The memory is the host's and freed: the write hits what came in its place.",
        "Keep no pointers to schemes, tables and the ops array.",
        _HEADER,
    ),
    Rule(
        "FS-129",
        "plugin_memory_free takes all that TF_InitPlugin leaves, block by block.",
        "The host frees each scheme, each table and the array: the process ends.",
        "Get each of them from plugin_memory_allocate, by a call of its own.",
        _HEADER,
    ),
    Rule(
        "FS-130",
        "TF_InitPlugin returns.",
        "In TensorFlow the registration ends the process; here the plugin is quarantined.",
        "Report what is missing from the `init` of the scheme, by its status.",
        _HEADER,
    ),
    Rule(
        "FS-131",
        "Mapping the library prints nothing, starts no thread and takes less than 3 seconds.",
        "The application that merely looks for plugins pays for it.",
        "Leave the work to the `init` of the scheme, or to its first use.",
        "design §9",
        Severity.NOTE,
    ),
)
