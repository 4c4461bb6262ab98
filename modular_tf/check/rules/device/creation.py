"""Rules of counting and creating devices, beyond what a host needs to list them."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_NO_DEVICES = "No device of the platform is listed, with no word of why."
_CHANGES = "TensorFlow asks again and again; a device may vanish from a list, or have no device."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-111",
        "The device count is not negative.",
        _NO_DEVICES,
        "Set 0 where there is no device, and a failed status where the number is unknown.",
        _OBSERVED,
    ),
    Rule(
        "SE-112",
        "get_device_count sets the count in every call.",
        "Whatever was in the host's variable is taken for the number of devices.",
        "Assign *device_count on every path that leaves the status OK.",
        _OBSERVED,
    ),
    Rule(
        "SE-113",
        "The device count does not change from call to call.",
        _CHANGES,
        "Count once, when the plugin is initialised.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "SE-114",
        "get_device_count can be called by several threads at once.",
        _CHANGES,
        "Guard what it shares, or count once when the plugin is initialised.",
        _HEADER,
    ),
    Rule(
        "SE-115",
        "create_device writes the ordinal that it was asked for into SP_Device.",
        "Work for one device goes to another, if the plugin itself goes by the ordinal.",
        "Copy params->ordinal to params->device->ordinal.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-116",
        "create_device refuses an ordinal that is not below the count.",
        "A mistake of the host's becomes a device that does not exist.",
        "Compare params->ordinal with the count, and set INVALID_ARGUMENT.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-117",
        "create_device writes no further than SP_Device goes.",
        "The host's memory behind the struct is overwritten.",
        "Assign fields one by one, of the header that the host has.",
        _HEADER,
    ),
    Rule(
        "SE-118",
        "A device that was destroyed can be created again.",
        "A service that is closed and opened again in one process loses the device.",
        "Give back in destroy_device all that create_device has taken.",
        "design 5",
        Severity.WARNING,
    ),
    Rule(
        "SE-119",
        "Devices that were destroyed leave no descriptors, mappings or threads behind.",
        "A process that opens and closes services runs out of them.",
        "Give back in destroy_device all that create_device has taken.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-120",
        "create_stream_executor gives the same functions each time.",
        "Hosts take one copy for all devices of the platform: TensorFlow the first.",
        "Tell devices apart by the SP_Device that each function is given.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "SE-121",
        "create_timer_fns succeeds and fills in nanoseconds.",
        "Timers cannot be read; here the host's clock measures instead.",
        "Set SP_TimerFns.nanoseconds, or leave create_timer_fns NULL.",
        _HEADER,
    ),
)
