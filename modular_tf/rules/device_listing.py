"""Rules of listed devices: counting them, creating them, and who serves which device type."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

_OBSERVED = "TensorFlow 2.21, observed"

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
    "host limit",
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
    "host check",
    Severity.WARNING,
)
DEVICE_FNS_RETURN = Rule(
    "SE-045",
    "The functions of SP_DeviceFns return normally.",
    "The detail counts as not known.",
    "Catch every exception inside the plugin.",
    "host check",
    Severity.WARNING,
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
    "design 5",
)
PYTHON_FACTORY_RETURNS = Rule(
    "SE-055",
    "The methods of a Python device factory return what they promise.",
    "The failure becomes an error of that call; nothing else is touched.",
    "See the cause of the error.",
    "design 5",
)
