"""Rules of `rename_file`."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"
_TEST = "TensorFlow's test of filesystem plugins"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-235",
        "rename_file moves a file: the new name has its content, the old name does not exist.",
        "Programs that write beside and rename at the end lose their file, or keep two.",
        "Give the file the new name, then report OK; never leave both.",
        _HEADER,
    ),
    Rule(
        "FS-236",
        "rename_file replaces a file that has the new name already.",
        "A checkpoint that is written anew over an old one fails, or stays the old one.",
        "Replace the target as rename(2) does; do not answer ALREADY_EXISTS.",
        _HEADER,
    ),
    Rule(
        "FS-237",
        "rename_file of a missing file is NOT_FOUND, and nothing appears under the new name.",
        "A caller cannot tell a lost file from a moved one.",
        "Look for the source before the target is touched.",
        _HEADER,
    ),
    Rule(
        "FS-238",
        "rename_file into a missing directory is NOT_FOUND, and the file stays.",
        "The file ends where no listing shows it, or is lost.",
        "Check the target's directory first; do not create it.",
        _HEADER,
    ),
    Rule(
        "FS-239",
        "rename_file of a directory, or onto one, is FAILED_PRECONDITION, and both stay.",
        "A tree is moved or replaced where the caller spoke of one file.",
        "Refuse a directory on either side with FAILED_PRECONDITION.",
        _TEST,
    ),
    Rule(
        "FS-240",
        "rename_file of a name below a file, or to one, is FAILED_PRECONDITION.",
        "The caller takes a wrong path for a missing file.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-241",
        "rename_file of a file to its own name keeps its content, and should be OK.",
        "Copy and delete of one name loses the file.",
        "Compare the two names first, and report OK where they are one file.",
        "rename(2)",
    ),
    Rule(
        "FS-242",
        "rename_file moves a file from one directory to another.",
        "Files that are written in a temporary directory cannot be put in their place.",
        "Take the whole path of the target, not its last name.",
        _HEADER,
    ),
    Rule(
        "FS-243",
        "A rename without a slot of its own says when it failed half-way.",
        "The host copies, then deletes: a failure between leaves both, and others see both.",
        "Offer rename_file where the store can move a file in one step.",
        "TensorFlow 2.21, observed",
        Severity.NOTE,
    ),
    Rule(
        "FS-335",
        "Renaming a file moves no other file, however its name begins.",
        "Files that were not named disappear, or get another name.",
        "Compare whole names: a listing by prefix has more than was asked for.",
        "filesystem.h; published plugins, observed",
    ),
)
