"""Rules of `copy_file`."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"
_TEST = "TensorFlow's test of filesystem plugins"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-244",
        "copy_file leaves two files with the same content.",
        "The copy is short, empty or something else, and the caller was told OK.",
        "Copy until the source ends, close the target, then report OK.",
        _HEADER,
    ),
    Rule(
        "FS-245",
        "copy_file replaces a longer target wholly: nothing of it stays behind the copy.",
        "The copy ends in bytes of another file.",
        "Truncate the target, or write beside it and rename.",
        _HEADER,
    ),
    Rule(
        "FS-246",
        "copy_file of a missing file is NOT_FOUND, and no target appears.",
        "An empty file appears that looks like a copy.",
        "Open the source before the target is created.",
        _HEADER,
    ),
    Rule(
        "FS-247",
        "copy_file of a directory is FAILED_PRECONDITION, and no target appears.",
        "A file appears that pretends to be the directory's copy.",
        "Refuse a directory as the source with FAILED_PRECONDITION.",
        _TEST,
    ),
    Rule(
        "FS-248",
        "copy_file onto a directory is FAILED_PRECONDITION, or copies into it.",
        "The directory is replaced, or the copy is somewhere unknown.",
        "Refuse with FAILED_PRECONDITION; the header allows a copy below the source's name too.",
        _HEADER,
    ),
    Rule(
        "FS-249",
        "copy_file from a name below a file, or to one, is FAILED_PRECONDITION.",
        "The caller takes a wrong path for a missing file.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-250",
        "copy_file into a missing directory is NOT_FOUND.",
        "The copy ends where no listing shows it.",
        "Check the target's directory; do not create it.",
        _HEADER,
    ),
    Rule(
        "FS-251",
        "copy_file of an empty file makes an empty file.",
        "Empty markers such as _SUCCESS are lost.",
        "Create the target even where there is nothing to write.",
        _HEADER,
    ),
    Rule(
        "FS-252",
        "copy_file of a file onto itself keeps its content.",
        "Opening the target truncates the source: the file is lost, and the caller was told OK.",
        "Compare the two names (or device and inode) before the target is opened.",
        _HEADER,
    ),
    Rule(
        "FS-253",
        "copy_file copies each byte of a file of several MiB.",
        "Data is lost at the borders of buffers.",
        "Go on after a short read or write, at the offset that was reached.",
        _HEADER,
    ),
    Rule(
        "FS-254",
        "copy_file copies files of more than 2 GiB.",
        "A count kept in 32 bits overflows: the copy ends early or never.",
        "Keep counts and offsets in 64 bits, and repeat sendfile until nothing is left.",
        "TensorFlow 2.21, observed",
    ),
    Rule(
        "FS-255",
        "A copy_file that fails leaves the target as it was.",
        "A failed copy costs the caller the old file as well.",
        "Write beside the target and rename, or open the source before truncating.",
        _HEADER,
        Severity.WARNING,
    ),
)
