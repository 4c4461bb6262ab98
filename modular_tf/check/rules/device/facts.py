"""Rules of what a device says of itself."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_SHOWN = "Lists of devices, and who chooses a device by them, are misled."
_UNKNOWN = "Return a negative number for what is not known."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-124",
        "Hardware name, vendor and bus id are UTF-8, without control characters.",
        "They cannot be shown, nor written to JSON or logs as they are.",
        "Encode them as UTF-8, and end them where the hardware's own buffer has blanks or NULs.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-125",
        "The PCI bus id looks like 0000:00:02.1, or is not given.",
        "The NUMA node and the driver of the device cannot be found by it.",
        "Write domain:bus:device.function in hexadecimal, or leave it NULL.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-126",
        "The NUMA node is negative, or the number of a node.",
        "Threads and memory are bound to a node that is not there.",
        _UNKNOWN,
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-127",
        "The memory bandwidth is negative, or a number of bytes per second.",
        _SHOWN,
        f"The unit is bytes per second. {_UNKNOWN}",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-128",
        "The GFLOPS are negative, or a finite number above 0.",
        _SHOWN,
        f"The unit is 1e9 operations per second. {_UNKNOWN}",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-129",
        "What a device says of itself does not change.",
        "Hosts ask once or often: two of them see two devices.",
        "Find the facts out once, in create_device.",
        _HEADER,
        Severity.WARNING,
    ),
)
