"""Rules of a filesystem plugin's file: what it asks for and what it shows."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

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
        "Whoever binds to them has two kinds of TF_Status in one process, and crashes.",
        "Do not link TensorFlow into the plugin; hide all symbols but TF_InitPlugin.",
        "ld.so(8), symbol lookup",
        Severity.WARNING,
    ),
)
