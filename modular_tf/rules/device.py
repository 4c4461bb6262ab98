"""Rules of devices: what `SE_InitPlugin` leaves, listing devices, and who serves a device type."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity, Violation

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_DIALECTS = "struct sizes of the headers of TensorFlow 2.5 to 2.21 and of the RFC"
_ABORTS = "TensorFlow aborts the whole process; here the plugin is refused."
_SERVED = "TensorFlow aborts the whole process; here all fields of the struct count."
_SILENT = "TensorFlow does not check it; what follows is up to the plugin."
_PASSED = "The plugin is refused with its own code and message; TensorFlow aborts."

ENTRY_POINT_EXPORTED = Rule(
    "SE-001",
    "A device plugin exports SE_InitPlugin.",
    "Without it the library is no device plugin; TensorFlow skips it.",
    "Export SE_InitPlugin with default visibility and C linkage.",
    _HEADER,
)
ENTRY_POINT_SUCCEEDS = Rule(
    "SE-002",
    "SE_InitPlugin leaves its status OK.",
    _PASSED,
    "Read the plugin's own message; its documentation says what it needs.",
    _OBSERVED,
)
ONE_LAYOUT = Rule(
    "SE-004",
    "SP_Platform, SP_PlatformFns and SP_StreamExecutor match one and the same layout.",
    "The layout of the slots is unknown; the plugin is refused.",
    "Set each struct_size to its macro from one version of the header.",
    _DIALECTS,
)
PARAMS_SIZE_SET = Rule(
    "SE-005",
    "SE_PlatformRegistrationParams.struct_size is not 0.",
    _SERVED,
    "Keep the struct_size that the host has set.",
    _HEADER,
    Severity.WARNING,
)
VERSION_OF_HOST = Rule(
    "SE-006",
    "The version numbers are those of the host, 0.0.1.",
    _SILENT,
    "Leave the version fields alone, or set SE_MAJOR, SE_MINOR and SE_PATCH.",
    _HEADER,
    Severity.WARNING,
)
LENT_STRUCTS_FILLED = Rule(
    "SE-007",
    "The plugin fills the structs that the host lends.",
    "TensorFlow reads its own, empty, structs and aborts; here the plugin's are used.",
    "Write through params->platform and params->platform_fns; never replace the pointers.",
    _HEADER,
    Severity.WARNING,
)
STRUCTS_READABLE = Rule(
    "SE-008",
    "Structs that the plugin points to are readable memory.",
    "Reading them would crash the process; the plugin is refused.",
    "Write through the pointers that the host gave.",
)
DESTROY_PLATFORM_SET = Rule(
    "SE-009",
    "SE_PlatformRegistrationParams.destroy_platform is set, but in the RFC's layout.",
    _ABORTS,
    "Provide it; it may do nothing.",
    _HEADER,
)
DESTROY_PLATFORM_FNS_SET = Rule(
    "SE-010",
    "SE_PlatformRegistrationParams.destroy_platform_fns is set, but in the RFC's layout.",
    _ABORTS,
    "Provide it; it may do nothing.",
    _HEADER,
)
PLATFORM_SIZE_SET = Rule(
    "SE-011",
    "SP_Platform.struct_size is not 0.",
    _SERVED,
    "Set it to SP_PLATFORM_STRUCT_SIZE.",
    _HEADER,
    Severity.WARNING,
)
PLATFORM_NAME_READABLE = Rule(
    "SE-012",
    "SP_Platform.name is a readable string.",
    _ABORTS,
    "Set it to a string that lives as long as the plugin.",
    _HEADER,
)
PLATFORM_NAME_SPELLING = Rule(
    "SE-013",
    "SP_Platform.name consists of A-Z and _, in the RFC's layout also of a-z and 0-9, and starts"
    " with a letter.",
    _ABORTS,
    "Choose a name such as MY_PLATFORM: no digits, no lower case.",
    _OBSERVED,
)
DEVICE_TYPE_READABLE = Rule(
    "SE-014",
    "SP_Platform.type is a readable string.",
    _ABORTS,
    "Set it to a string that lives as long as the plugin, such as GPU.",
    _HEADER,
)
DEVICE_TYPE_SPELLING = Rule(
    "SE-015",
    "SP_Platform.type consists of A-Z and _, in the RFC's layout also of a-z and 0-9, and starts"
    " with a letter.",
    _ABORTS,
    "Choose a type such as MY_DEVICE: no digits, no lower case.",
    _OBSERVED,
)
FLAGS_BOOLEAN = Rule(
    "SE-016",
    "The flags of SP_Platform are 0 or 1.",
    _SILENT,
    "Zero the struct before filling it.",
    _HEADER,
    Severity.WARNING,
)
PLATFORM_FNS_SIZE_SET = Rule(
    "SE-017",
    "SP_PlatformFns.struct_size is not 0.",
    _SERVED,
    "Set it to SP_PLATFORM_FNS_STRUCT_SIZE.",
    _HEADER,
    Severity.WARNING,
)
PLATFORM_FNS_SET = Rule(
    "SE-018",
    "SP_PlatformFns creates and destroys devices, device functions and executors.",
    _ABORTS,
    "Provide all six slots, the RFC's four; a destroy function may do nothing.",
    _OBSERVED,
)
DEVICE_COUNT_SET = Rule(
    "SE-019",
    "SP_PlatformFns.get_device_count is set, in the layouts that have it.",
    "TensorFlow crashes when it lists devices; here the plugin is refused.",
    "Provide it, and set the count.",
    _OBSERVED,
)
TIMER_FNS_PAIRED = Rule(
    "SE-020",
    "create_timer_fns and destroy_timer_fns are both set or both NULL.",
    _SILENT,
    "Provide both or none.",
    _HEADER,
    Severity.WARNING,
)
CREATE_DEVICE_FNS_SUCCEEDS = Rule(
    "SE-021",
    "create_device_fns leaves its status OK.",
    _PASSED,
    "Read the plugin's own message.",
    _OBSERVED,
)
DEVICE_FNS_SIZE_SET = Rule(
    "SE-022",
    "SP_DeviceFns.struct_size is not 0.",
    _SERVED,
    "Set it to SP_DEVICE_FNS_STRUCT_SIZE.",
    _HEADER,
    Severity.WARNING,
)
CREATE_EXECUTOR_SUCCEEDS = Rule(
    "SE-023",
    "create_stream_executor leaves its status OK.",
    _PASSED,
    "Read the plugin's own message.",
    _OBSERVED,
)
EXECUTOR_SIZE_SET = Rule(
    "SE-024",
    "SP_StreamExecutor.struct_size is not 0.",
    _SERVED,
    "Set it to SP_STREAMEXECUTOR_STRUCT_SIZE.",
    _HEADER,
    Severity.WARNING,
)
EXECUTOR_SLOTS_SET = Rule(
    "SE-025",
    "SP_StreamExecutor has every slot that is not optional, but in the RFC's layout.",
    _ABORTS,
    "Provide the slot; see the header for what it must do.",
    _OBSERVED,
)
UNIFIED_MEMORY_PAIRED = Rule(
    "SE-026",
    "A platform with unified memory has both functions of unified memory.",
    _ABORTS,
    "Provide both, or clear SP_Platform.supports_unified_memory.",
    _OBSERVED,
)
DEVICE_COPIES_SET = Rule(
    "SE-027",
    "memcpy_dtod and sync_memcpy_dtod are set.",
    "TensorFlow calls them unchecked and crashes when it copies on the device.",
    "Provide both.",
    _OBSERVED,
    Severity.WARNING,
)
TIMERS_COMPLETE = Rule(
    "SE-028",
    "The four timer functions are all set or all NULL.",
    _SILENT,
    "Provide all of them or none.",
    _HEADER,
    Severity.WARNING,
)
DEVICE_SLOTS_ARE_CODE = Rule(
    "SE-029",
    "Every slot that is set points to executable code.",
    "Calling it would crash the process; the plugin is refused.",
    "Zero each struct before filling it, and give its true size.",
)
STRUCT_COMPLETE = Rule(
    "SE-030",
    "A struct is not smaller than its layout.",
    "Slots past the announced size count as NULL; TensorFlow never checks the size.",
    "Set struct_size to the struct's own macro.",
    "struct-size rule",
    Severity.WARNING,
)
STRUCT_KNOWN_WHOLE = Rule(
    "SE-031",
    "A struct is not larger than the host knows.",
    "Fields past the known ones are ignored.",
    "None needed; a newer host may use them.",
    "struct-size rule",
    Severity.WARNING,
)
DESTROY_RETURNS = Rule(
    "SE-032",
    "The destroy functions return normally.",
    "What the plugin held may leak.",
    "Catch every exception inside the plugin.",
)
FILLS_SET = Rule(
    "SE-033",
    "mem_zero, memset and memset32 are set, in the layouts that have them.",
    "TensorFlow aborts the whole process; here the host fills memory by copying to it.",
    "Provide all three.",
    _OBSERVED,
    Severity.WARNING,
)
ONE_ALLOCATOR = Rule(
    "SE-034",
    "At most one of create_allocator and create_custom_allocator is set.",
    "The plugin does not say which allocator to use; the plugin is refused.",
    "Provide one of them, or none to be served by the functions of SP_StreamExecutor.",
    "RFC of 2020-09-08",
)
ALLOCATOR_PAIRED = Rule(
    "SE-035",
    "Each of the RFC's allocators has both functions, to create and to destroy it.",
    "The allocator is not used; the functions of SP_StreamExecutor serve.",
    "Provide both; a destroy function may do nothing.",
    "RFC of 2020-09-08",
    Severity.WARNING,
)
DEMANDED_LATER = Rule(
    "SE-036",
    "A plugin of the RFC's layout has what TensorFlow demands of later layouts.",
    "Accepted, since the RFC does not demand it; a device without a function fails with"
    " UNIMPLEMENTED when the function is needed.",
    "Provide it before the plugin is built with a header of TensorFlow.",
    "RFC of 2020-09-08",
    Severity.WARNING,
)


def null_field(broken: Rule, struct: str, field: str, *, though: str = "") -> Violation:
    """Return the violation of a struct that has NULL where a rule demands more.

    `though` is what else the plugin says that contradicts it.
    """
    return Violation(broken, f"{struct}.{field} is NULL" + (f", but {though}" if though else ""))


DEVICE_COUNT_SUCCEEDS = Rule(
    "SE-040",
    "get_device_count leaves its status OK.",
    "TensorFlow logs it and lists no device of the platform; so do we, with the reason.",
    "Read the plugin's own message.",
    _OBSERVED,
)
DEVICE_COUNT_BOUNDED = Rule(
    "SE-041",
    "The device count is at most 4096.",
    "A larger number is an uninitialised variable; no device of the platform is listed.",
    "Set *device_count in every call of get_device_count.",
)
CREATE_DEVICE_SUCCEEDS = Rule(
    "SE-042",
    "create_device leaves its status OK.",
    "The device cannot be used; the other ordinals can.",
    "Read the plugin's own message.",
    _OBSERVED,
)
DEVICE_SIZE_SET = Rule(
    "SE-043",
    "SP_Device.struct_size is not 0.",
    "TensorFlow refuses the device; here all fields of the struct count.",
    "Set it to SP_DEVICE_STRUCT_SIZE.",
    _OBSERVED,
    Severity.WARNING,
)
DEVICE_STRINGS_READABLE = Rule(
    "SE-044",
    "The strings of SP_Device are readable.",
    "The detail counts as not known.",
    "Keep the strings alive until destroy_device.",
    severity=Severity.WARNING,
)
DEVICE_FNS_RETURN = Rule(
    "SE-045",
    "The functions of SP_DeviceFns return normally.",
    "The detail counts as not known.",
    "Catch every exception inside the plugin.",
    severity=Severity.WARNING,
)
CREATE_ALLOCATOR_SUCCEEDS = Rule(
    "SE-046",
    "create_allocator and create_custom_allocator leave their status OK.",
    "No device of the platform can be worked with; the next attempt asks again.",
    "Read the plugin's own message.",
    "RFC of 2020-09-08",
)
ALLOCATOR_SLOTS_SET = Rule(
    "SE-047",
    "An allocator has all its functions; those of unified memory if it supports that.",
    "The allocator is destroyed again, and no device of the platform can be worked with.",
    "Set all functions of SP_AllocatorFns or SP_CustomAllocatorFns.",
    "RFC of 2020-09-08",
)
PLATFORM_NAME_FREE = Rule(
    "SE-050",
    "A platform name is taken once, whatever its case.",
    "TensorFlow aborts; here the first platform of that name stays.",
    "Rename one platform, or disable one of the two plugins.",
    _OBSERVED,
)
PRIORITIES_DIFFER = Rule(
    "SE-051",
    "Two factories of one device type have different priorities.",
    "TensorFlow aborts; here the first one serves and the other is shadowed.",
    "Set a priority for one of them in the configuration.",
    _OBSERVED,
)
HIGHEST_PRIORITY = Rule(
    "SE-052",
    "No factory of higher priority serves the device type.",
    "The other factory serves the type; this one is shadowed.",
    "Raise its priority in the configuration, or disable the other plugin.",
    _OBSERVED,
    Severity.WARNING,
)
DEVICE_TYPE_ENABLED = Rule(
    "SE-053",
    "The device type is enabled.",
    "The factory is not used, as in TensorFlow.",
    "Add the type to TF_ENABLED_DEVICE_TYPES, or unset the variable.",
    _OBSERVED,
    Severity.WARNING,
)
PYTHON_FACTORY_COMPLETE = Rule(
    "SE-054",
    "A Python device factory has device_type, platform, priority and device_count.",
    "It is refused with the error that names what is missing or wrong.",
    "Follow modular_tf.device.factory.DeviceFactory.",
)
PYTHON_FACTORY_RETURNS = Rule(
    "SE-055",
    "The methods of a Python device factory return what they promise.",
    "The failure becomes an error of that call; nothing else is touched.",
    "See the cause of the error.",
)
