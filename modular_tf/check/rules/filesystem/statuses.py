"""Rules of the statuses that operations set."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_STATUS = "tf_status.h"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-136",
        "An operation that succeeds sets its status to OK.",
        "A status that comes with something in it keeps it: success looks like failure.",
        "End each operation with TF_SetStatus, on every way out.",
        _STATUS,
        Severity.WARNING,
    ),
    Rule(
        "FS-137",
        "An operation that fails sets one of the 16 codes, and a message in UTF-8.",
        "Users cannot tell what went wrong.",
        "Choose a code of tf_status.h, and say what failed and on what.",
        _STATUS,
        Severity.WARNING,
    ),
    Rule(
        "FS-138",
        "An operation that the plugin offers does not answer UNIMPLEMENTED.",
        "The host's default is not used, since the plugin claims to have an answer.",
        "Leave the slot NULL.",
        "filesystem.h",
        Severity.WARNING,
    ),
    Rule(
        "FS-357",
        "An operation on a long path works on this path alone, or fails with a code.",
        "Programs whose paths are long crash, or read and replace another file.",
        "Size buffers by the length of the path; refuse what is too long by INVALID_ARGUMENT.",
        "POSIX, pathname resolution; tf_status.h",
    ),
    Rule(
        "FS-334",
        "What an operation does is the same whatever its status held before.",
        "A host that uses a status again after a failure gets that failure from every call.",
        "Set the status to OK first, and look only at what the plugin itself put there.",
        _STATUS,
        Severity.WARNING,
    ),
)
