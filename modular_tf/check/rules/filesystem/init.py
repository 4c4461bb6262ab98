"""Rules of `init` and `cleanup` of a filesystem."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-132",
        "init sets its status to OK, and writes to plugin_filesystem alone.",
        "A host that does not preset the status sees a failure; what lies behind the handle is "
        "the host's.",
        'Call TF_SetStatus(status, TF_OK, "") and set filesystem->plugin_filesystem.',
        _HEADER,
    ),
    Rule(
        "FS-134",
        "Two filesystems of one plugin do not disturb each other.",
        "A host that registers the plugin again, or forks, breaks the filesystem that it has.",
        "Keep all state behind plugin_filesystem.",
        "design §9",
        Severity.WARNING,
    ),
    Rule(
        "FS-135",
        "init and cleanup can follow each other many times, and nothing is left behind.",
        "Each reload of the plugin costs file descriptors or memory.",
        "Release in cleanup all that init has acquired.",
        _HEADER,
        Severity.WARNING,
    ),
)
