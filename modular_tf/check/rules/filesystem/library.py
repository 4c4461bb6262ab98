"""Rules of a filesystem plugin as a library: linking, init and cleanup, heap."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-103",
        "The library asks TensorFlow for functions of its C API alone.",
        "C++ functions change with each release of TensorFlow: the plugin serves one release.",
        "Call the C functions of the plugin headers, and link nothing of TensorFlow's C++.",
        "filesystem.h; plugins-in-the-wild",
        Severity.WARNING,
    ),
    Rule(
        "FS-104",
        "The library exports no functions of TensorFlow's C API.",
        "A library that binds to them has two kinds of TF_Status in one process, and crashes.",
        "Do not link TensorFlow into the plugin; hide all symbols but TF_InitPlugin.",
        "ld.so(8), symbol lookup",
        Severity.WARNING,
    ),
    Rule(
        "FS-132",
        "init succeeds on a zeroed handle, and writes to plugin_filesystem alone.",
        "The scheme is not registered; what lies behind the handle is the host's.",
        "Set filesystem->plugin_filesystem or leave it NULL; a status that is not set is OK.",
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
    Rule(
        "FS-329",
        "A plugin writes only into its own memory and what it is lent, and frees a block once.",
        "The damage shows up elsewhere: a crash, or wrong data, in whatever lies beside it.",
        "Run the plugin with AddressSanitizer, and look at the calls before the one that is named.",
        "the C language; filesystem.h, on const arguments",
    ),
)
