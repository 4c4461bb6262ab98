"""Rules of `translate_name`, which turns what users write into what the other slots are given."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"
_DEFAULT = "TensorFlow's own translation"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-139",
        "translate_name gives a string of plugin_memory_allocate for every URI.",
        "TensorFlow aborts where it gets NULL; here every operation on the path fails.",
        "Return a copy of the URI where there is nothing to translate.",
        _HEADER,
    ),
    Rule(
        "FS-140",
        "translate_name takes the empty path.",
        "Calls with an empty path crash the process.",
        "Return a copy of it, or the name of the root.",
        _HEADER,
    ),
    Rule(
        "FS-141",
        "The root of plain paths is called /, however many slashes it is written with.",
        "Listing / fails or shows something else.",
        "Collapse repeated slashes.",
        _DEFAULT,
    ),
    Rule(
        "FS-142",
        "Relative plain paths stay relative, in normal form.",
        "The same file has several names, which caches and comparisons take for several files.",
        "Resolve . and .. in the text of the path.",
        _DEFAULT,
        Severity.WARNING,
    ),
    Rule(
        "FS-143",
        "A URI without a path names the root, however many slashes it ends with.",
        "s:// and s:/// mean different things to the plugin, and the same to users.",
        "Translate all of them to the same root.",
        _DEFAULT,
        Severity.WARNING,
    ),
    Rule(
        "FS-144",
        "A path with . and .. and repeated slashes names what its normal form names.",
        "Joined paths, which tools make without cleaning them, do not reach the file.",
        "Bring paths into normal form in translate_name, or leave the slot NULL.",
        _DEFAULT,
    ),
    Rule(
        "FS-145",
        "No number of .. in a path leads out of the root.",
        "A user who controls a file name reaches files of other users.",
        "Drop every .. that stands at the root.",
        _DEFAULT,
    ),
    Rule(
        "FS-146",
        "A directory is the same with a slash behind its name.",
        "Half of all tools write directories with the slash, and do not find them.",
        "Drop slashes at the end.",
        _DEFAULT,
        Severity.WARNING,
    ),
    Rule(
        "FS-147",
        "A name that was translated translates to itself.",
        "Hosts translate names again in their defaults, and reach another file.",
        "Return names in normal form unchanged.",
        _DEFAULT,
        Severity.WARNING,
    ),
    Rule(
        "FS-148",
        "translate_name keeps every byte of a name, and takes any length.",
        "Files with unusual names cannot be reached.",
        "Copy names byte by byte; decode nothing, cut nothing off.",
        _DEFAULT,
    ),
    Rule(
        "FS-149",
        "translate_name answers the same from every thread, and keeps no memory.",
        "It is called before every other operation: it corrupts or leaks all the time.",
        "Use no static buffers.",
        _HEADER,
    ),
)
