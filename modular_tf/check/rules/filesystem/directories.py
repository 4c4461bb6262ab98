"""Rules of making directories."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_ONE = "filesystem.h, create_dir"
_MANY = "filesystem.h, recursively_create_dir"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-206",
        "create_dir makes an empty directory.",
        "Nothing can be saved below a directory of its own.",
        "Create the entry, so that stat and is_directory know it at once.",
        _ONE,
    ),
    Rule(
        "FS-207",
        "create_dir in a missing directory is NOT_FOUND, and makes no parent.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND; making parents is what recursively_create_dir is for.",
        _ONE,
    ),
    Rule(
        "FS-208",
        "create_dir of a directory that is there is ALREADY_EXISTS.",
        "Of several programs that make one directory each believes to be the first.",
        "Set TF_ALREADY_EXISTS.",
        _ONE,
    ),
    Rule(
        "FS-209",
        "create_dir of a name that is a file is ALREADY_EXISTS, and the file stays.",
        "A file is lost, or hidden behind a directory.",
        "Set TF_ALREADY_EXISTS and change nothing.",
        _ONE,
    ),
    Rule(
        "FS-210",
        "create_dir below a file is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file.",
        _ONE,
    ),
    Rule(
        "FS-211",
        "create_dir of the filesystem's root is ALREADY_EXISTS.",
        "Programs that make their way down from the root fail at the first step.",
        "Treat the root as a directory that is always there.",
        _ONE,
        Severity.WARNING,
    ),
    Rule(
        "FS-212",
        "recursively_create_dir makes a directory with all of its parents.",
        "Saving into a new folder fails.",
        "Make each level that is missing, or leave the slot NULL: the host does it.",
        _MANY,
    ),
    Rule(
        "FS-213",
        "recursively_create_dir of a directory that is there is OK.",
        "A program that is started again fails where it saved before.",
        "Never answer ALREADY_EXISTS for a directory.",
        _MANY,
    ),
    Rule(
        "FS-214",
        "recursively_create_dir makes what is missing below parents that exist.",
        "Only the first of several folders can be made.",
        "Take an existing parent for made.",
        _MANY,
    ),
    Rule(
        "FS-215",
        "recursively_create_dir of a name that is a file is FAILED_PRECONDITION.",
        "Callers take the file for a directory.",
        "Look at the kind of what is there, and set TF_FAILED_PRECONDITION.",
        _MANY,
    ),
    Rule(
        "FS-216",
        "recursively_create_dir below a file is FAILED_PRECONDITION, and makes nothing.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file.",
        _MANY,
    ),
    Rule(
        "FS-217",
        "recursively_create_dir never says NOT_FOUND for missing parents.",
        "Making them is what it is called for.",
        "Make missing parents, or leave the slot NULL.",
        _MANY,
    ),
    Rule(
        "FS-218",
        "recursively_create_dir reads slashes at the end, doubled slashes and .. as paths do.",
        "Directories with empty names, or named .., appear.",
        "Canonicalise the path first, in translate_name or here.",
        _MANY,
    ),
    Rule(
        "FS-219",
        "recursively_create_dir of one tree from several threads is OK.",
        "Of several workers that start at once all but one fail.",
        "Accept a directory that another process has just made.",
        _MANY,
    ),
    Rule(
        "FS-358",
        "recursively_create_dir of the filesystem's root is OK.",
        "Programs that make their way down from the root fail at the first step.",
        "Treat the root as a directory that is always there, also where no host is named.",
        _MANY,
    ),
)
