"""Rules of statuses and failures of a device at work."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-222",
        "Copies, streams and events leave the memory in use as it was.",
        "The figures that users plan memory by grow without reason.",
        "Count device memory in allocate and deallocate only.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-288",
        "An operation that succeeds sets its status to OK, whatever was in it.",
        "A host that uses a status again takes a success for the failure before.",
        'Call TF_SetStatus(status, TF_OK, "") at the end of each function.',
        "status.h",
        Severity.WARNING,
    ),
    Rule(
        "SE-289",
        "A failure has a code from 1 to 16, and a message.",
        "Users see an empty error, or an unknown number.",
        "Set one of the TF_Code numbers, and say in words what is wrong.",
        "status.h",
        Severity.WARNING,
    ),
    Rule(
        "SE-290",
        "After an operation that was refused the stream and the device go on.",
        "One mistake of one program ends the work of all others on the device.",
        "Check arguments before anything is enqueued.",
        _OBSERVED,
    ),
    Rule(
        "SE-291",
        "A failure on one stream does not show on another.",
        "Programs fail for what others did.",
        "Keep failures with the stream.",
        _HEADER,
    ),
    Rule(
        "SE-292",
        "Copies of no bytes take NULL on the host's side.",
        "Empty arrays have no address: programs with them fail or crash.",
        "Return OK where the size is 0, before any pointer is looked at.",
        "host recommendation",
        Severity.WARNING,
    ),
)
