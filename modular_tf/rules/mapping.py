"""Rules of mapping a library, calling its init functions, and replacing it."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

MAPPABLE = Rule(
    "LD-050",
    "The dynamic linker maps the library.",
    "Nothing of the plugin can be used.",
    "The message is the dynamic linker's own; install or rebuild what it names.",
    "dlopen(3)",
)
INIT_SYMBOL_IS_CODE = Rule(
    "LD-051",
    "An init symbol is the address of executable code.",
    "Calling it would crash the process.",
    "Export the init function itself, not data of that name.",
    "host check",
)
INIT_RETURNS = Rule(
    "LD-052",
    "An init function returns.",
    "It threw a C++ exception, which C callers cannot take; TensorFlow's process would end.",
    "Catch every exception in the init function.",
    "C calling convention",
)
PLUGIN_ENABLED = Rule(
    "LD-054",
    "The plugin is enabled by the configuration.",
    "It is listed as disabled and not opened.",
    "Change `enable` or `disable` in the configuration file.",
    "design, configuration",
)
NOT_VETOED = Rule(
    "LD-055",
    "No installed hook vetoes the plugin.",
    "It is listed as disabled and not opened.",
    "The reason is the hook's own; uninstall or configure the package that it comes from.",
    "design, hooks",
)
ENVIRONMENT_FITS = Rule(
    "LD-056",
    "The plugin finds the environment it was written for.",
    "The host changed a variable that makes this plugin crash.",
    "Unset the variable, or set it to a value that the plugin survives.",
    "known defects",
    Severity.WARNING,
)
SETTINGS_READ = Rule(
    "LD-057",
    "What the user has set for the plugin's store is read by the plugin.",
    "Other programs find the setting in a file that is ignored: the plugin works on another store.",
    "Set the variable that the message names.",
    "known defects",
    Severity.WARNING,
)
SEARCH_PATH_CHANGEABLE = Rule(
    "LD-097",
    "A search path that leads to the current directory can be changed.",
    "The plugin is not mapped: the dynamic linker would load any file of that name from the "
    "current directory.",
    "Take empty and relative directories out of the search path (patchelf --set-rpath).",
    "ld.so(8), DT_RPATH and DT_RUNPATH",
)
OFFER_UNCHANGED = Rule(
    "LD-095",
    "A plugin registers what it registered when it was tried.",
    "What it offers now serves; what it offered then and does not now is gone.",
    "If the plugin's offer depends on its surroundings, such as variables or hardware, set "
    'load = "eager" in the configuration.',
    "design, scan cache",
    Severity.WARNING,
)
PROC_MOUNTED = Rule(
    "LD-114",
    "The process finds its open files in /proc/self/fd.",
    "No plugin is loaded: each is mapped by the descriptor of the file that was checked.",
    "Mount /proc here (`mount -t proc proc /proc`), or let the container or chroot have it.",
    "proc(5)",
)
REPLACEMENT_ACCEPTED = Rule(
    "LD-085",
    "A file that replaces a serving plugin's is accepted as the old one was.",
    "The old generation goes on serving, from the bytes that it was loaded from; a process "
    "that starts now finds the new file and refuses it.",
    "Put the old file back, or one that loads; `modular-tf why` with the file's path shows "
    "what is wrong with this one.",
    "live drop-in: a replacement that fails must not take down what works",
    Severity.WARNING,
)
