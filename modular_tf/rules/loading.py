"""Rules of discovery, probe and loading (`LD-nnn`), in the order in which they are checked.

The first ones are checked by reading files; from LD-050 on the library is mapped.
"""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

PATH_EXISTS = Rule(
    id="LD-001",
    requirement="A path that the user names exists.",
    consequence="Nothing is searched there. TensorFlow raises from `import tensorflow`.",
    remedy="Correct the path, or remove it from the place that names it.",
    source="tensorflow/__init__.py, TF_PLUGGABLE_DEVICE_LIBRARY_PATH",
)
REGULAR_FILE = Rule(
    id="LD-002",
    requirement="A plugin is a regular file, or a symbolic link to one.",
    consequence="The candidate is rejected unopened: a FIFO or a device could block for ever.",
    remedy="Put the library itself there, and repair or remove the link, directory or device.",
    source="dlopen(3); TensorFlow's import fails on a directory named x.so",
)
READABLE = Rule(
    id="LD-003",
    requirement="A plugin is readable by the user of this process.",
    consequence="The candidate is rejected; dlopen would fail as well.",
    remedy="Give this user read permission on the file and on the directories above it.",
    source="dlopen(3)",
)
IS_ELF = Rule(
    id="LD-004",
    requirement="A plugin is an ELF file.",
    consequence="The candidate is rejected; dlopen would report 'invalid ELF header'.",
    remedy="Install the build of the plugin for Linux.",
    source="ELF gABI, chapter 4, ELF identification",
)
WHOLE_ELF = Rule(
    id="LD-005",
    requirement="All parts of an ELF file that its headers announce lie inside the file, and each "
    "address of its memory comes from one place of the file.",
    consequence="The candidate is rejected; mapping it could kill the process with SIGBUS, or map "
    "other bytes than those that were judged.",
    remedy="Copy or install the file again: it is cut off or damaged.",
    source="ELF gABI, chapters 4 and 5",
)
WORD_SIZE = Rule(
    id="LD-006",
    requirement="A plugin has a word size of 64 bits.",
    consequence="The candidate is rejected; dlopen would report 'wrong ELF class'.",
    remedy="Install the build of the plugin for 64 bits.",
    source="ELF gABI, EI_CLASS",
)
BYTE_ORDER = Rule(
    id="LD-007",
    requirement="A plugin has its numbers in little-endian order.",
    consequence="The candidate is rejected; dlopen would refuse its data encoding.",
    remedy="Install the build of the plugin for this machine.",
    source="ELF gABI, EI_DATA",
)
MACHINE = Rule(
    id="LD-008",
    requirement="A plugin is built for the machine that this process runs on.",
    consequence="The candidate is rejected; dlopen would report that it cannot open the object.",
    remedy="Install the build of the plugin for this machine.",
    source="ELF gABI, e_machine",
)
SHARED_OBJECT = Rule(
    id="LD-009",
    requirement="A plugin is a shared object that may be opened at run time.",
    consequence="The candidate is rejected; dlopen refuses programs and object files.",
    remedy="Link the plugin with -shared, without -pie and without -z nodlopen.",
    source="ELF gABI, e_type; dlopen(3); DF_1_PIE and DF_1_NOOPEN",
)
INIT_SYMBOL = Rule(
    id="LD-010",
    requirement="A plugin exports at least one of TensorFlow's init symbols.",
    consequence="The candidate is rejected: it has no function to call.",
    remedy="Export TF_InitPlugin (filesystem), SE_InitPlugin (device) or TF_InitKernel (kernels) "
    'with default visibility, as extern "C".',
    source="tensorflow/c/experimental/filesystem and stream_executor headers",
)
INIT_SYMBOL_IS_FUNCTION = Rule(
    id="LD-011",
    requirement="An init symbol is a function.",
    consequence="The candidate is rejected; TensorFlow would jump into data.",
    remedy="Export the init symbol as a function.",
    source="ELF gABI, symbol types",
)
KIND_SERVED = Rule(
    id="LD-012",
    requirement="A plugin is of a kind that this host serves: a filesystem, a device or kernels.",
    consequence="The candidate is listed with its kinds and not loaded.",
    remedy="Use this plugin with TensorFlow itself; this host runs no graph "
    "optimizers, profilers or PJRT devices.",
)
LIBRARIES_FOUND = Rule(
    id="LD-013",
    requirement="Every shared library that a plugin needs is found, for this machine.",
    consequence="The candidate is rejected; dlopen would report 'cannot open shared object file'.",
    remedy="Install the missing library where the system keeps libraries (ldconfig), or beside the "
    "plugin, linked with -Wl,-rpath,'$ORIGIN'.",
    source="ld.so(8), DT_NEEDED",
)
SYMBOLS_OFFERED = Rule(
    id="LD-014",
    requirement="Every strong undefined symbol of a plugin is offered by the process, by the "
    "libraries that the plugin needs, or by this host.",
    consequence="The candidate is rejected; dlopen would report 'undefined symbol'. TensorFlow "
    "shows the first one only.",
    remedy="Use a build of the plugin for the symbols that this host and system offer.",
    source="ld.so(8), RTLD_NOW",
)
GLIBC_NEW_ENOUGH = Rule(
    id="LD-015",
    requirement="The C library is at least as new as the one that a plugin was linked with.",
    consequence="The candidate is rejected; dlopen would report 'version GLIBC_x not found'.",
    remedy="Use a build of the plugin for an older glibc (manylinux), or a newer system.",
    source="ELF symbol versioning, DT_VERNEED",
)
SYMBOL_VERSIONS_OFFERED = Rule(
    id="LD-016",
    requirement="Every symbol version that a plugin needs is defined by the library it names.",
    consequence="The candidate is rejected; dlopen would report 'version x not found'.",
    remedy="Install a newer build of the named library, often libstdc++ or libgcc.",
    source="ELF symbol versioning, DT_VERNEED",
)
KERNEL_FUNCTIONS_OFFERED = Rule(
    id="LD-017",
    requirement="The functions for kernels, operations and graphs that a plugin with devices or "
    "kernels asks for are offered.",
    consequence="Its devices and kernels are served. A call of a missing function fails, and names "
    "the function (KN-100).",
    remedy="Nothing, for devices and kernels; use the plugin with TensorFlow to optimize graphs.",
    source="published device plugins bring their kernels along",
    severity=Severity.WARNING,
)
ENTRY_POINT_RESOLVES = Rule(
    id="LD-020",
    requirement="An entry point of group 'modular_tf.plugins' has the form 'package' or "
    "'package:relative/path' and names a file or a folder that exists.",
    consequence="The entry point is skipped; all others count.",
    remedy="Reinstall the distribution, or tell its author.",
)
ENTRY_POINT_STAYS_INSIDE = Rule(
    id="LD-021",
    requirement="An entry point names a path inside its package, and no link leads out of it.",
    consequence="The entry point is skipped; all others count.",
    remedy="Tell the distribution's author to name a relative path without '..', and to put the "
    "library itself there.",
)
DIRECTORY_LISTABLE = Rule(
    id="LD-022",
    requirement="A directory of plugins can be listed by the user of this process.",
    consequence="Nothing in the directory is found.",
    remedy="Give this user read and search permission on the directory.",
)
RECORD_READABLE = Rule(
    id="LD-023",
    requirement="The metadata of an installed distribution can be read.",
    consequence="Libraries of this distribution are not found.",
    remedy="Reinstall the distribution, or give this user read permission on its metadata.",
    source="PyPA specification 'Recording installed projects'",
)
SEARCH_BOUNDED = Rule(
    id="LD-145",
    requirement="A folder holds at most 10 000 libraries; a distribution lists at most 10 000 in "
    "its RECORD of at most 64 MiB, and at most 1000 entry points of a group in a file of at most "
    "1 MiB, in lines of at most 4096 characters.",
    consequence="The rest of the folder is not searched; of the distribution, what exceeds a bound "
    "is not searched at all. All other places count.",
    remedy="Name the plugin's file, or move the plugin to a folder of its own; uninstall the "
    "distribution, or tell its author.",
    source="host limit: looking at all of it would keep the process busy for minutes",
)
LINKING_BOUNDED = Rule(
    id="LD-096",
    requirement="A plugin needs at most 1024 libraries, directly or not; the dynamic linker lists "
    "them within 10 s, by names without line breaks and arrows (` => `), and finding its symbols "
    "takes bounded work.",
    consequence="The candidate is rejected without further checks: such a file may have been made "
    "to keep the process busy, or to hide what is loaded with it.",
    remedy="Tell the plugin's author to link it with what it uses, and to search few directories. "
    "Where the linker cannot be run, allow this process to start others.",
)

SIZE_BOUNDED = Rule(
    id="LD-111",
    requirement="A plugin, and each library that is loaded with it, has at most 4 GiB.",
    consequence="The candidate is rejected, and its bytes are neither hashed nor mapped: reading "
    "them would keep the process busy for minutes.",
    remedy="Take debug information out of the library (`strip --strip-debug`), or keep it in a "
    "file of its own (`objcopy --only-keep-debug`); remove what was appended to the library.",
    source="host limit; the longest published library of a plugin has 2.2 GiB",
)

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
)
NOT_VETOED = Rule(
    "LD-055",
    "No installed hook vetoes the plugin.",
    "It is listed as disabled and not opened.",
    "The reason is the hook's own; uninstall or configure the package that it comes from.",
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
    severity=Severity.WARNING,
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
