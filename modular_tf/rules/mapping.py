"""Rules of mapping a library and calling its init functions; they follow the probe's."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

RULES: tuple[Rule, ...] = (
    Rule(
        "LD-050",
        "The dynamic linker maps the library.",
        "Nothing of the plugin can be used.",
        "The message is the dynamic linker's own; install or rebuild what it names.",
        "dlopen(3)",
    ),
    Rule(
        "LD-051",
        "An init symbol is the address of executable code.",
        "Calling it would crash the process.",
        "Export the init function itself, not data of that name.",
        "host check",
    ),
    Rule(
        "LD-052",
        "An init function returns.",
        "It threw a C++ exception, which C callers cannot take; TensorFlow's process would end.",
        "Catch every exception in the init function.",
        "C calling convention",
    ),
    Rule(
        "LD-053",
        "A need of TensorFlow's library can be led to the host runtime.",
        "The plugin cannot be mapped without TensorFlow.",
        "Link the plugin against libtensorflow_framework.so.2, or without naming a library.",
        "host limit",
    ),
    Rule(
        "LD-054",
        "The plugin is enabled by the configuration.",
        "It is listed as disabled and not opened.",
        "Change `enable` or `disable` in the configuration file.",
        "design, configuration",
    ),
    Rule(
        "LD-055",
        "No installed hook vetoes the plugin.",
        "It is listed as disabled and not opened.",
        "The reason is the hook's own; uninstall or configure the package that it comes from.",
        "design, hooks",
    ),
    Rule(
        "LD-056",
        "The plugin finds the environment it was written for.",
        "The host changed a variable that makes this plugin crash.",
        "Unset the variable, or set it to a value that the plugin survives.",
        "known defects",
        Severity.WARNING,
    ),
    Rule(
        "LD-097",
        "A search path that leads to the current directory can be changed.",
        "The plugin is not mapped: the dynamic linker would load any file of that name from the "
        "current directory.",
        "Take empty and relative directories out of the search path (patchelf --set-rpath).",
        "ld.so(8), DT_RPATH and DT_RUNPATH",
    ),
)
