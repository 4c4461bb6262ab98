"""Rules of files that are opened for writing at their end."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h, new_appendable_file"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-192",
        "new_appendable_file creates a missing file, empty.",
        "The first run of a program that continues its log fails.",
        "Create the file where it is missing.",
        _HEADER,
    ),
    Rule(
        "FS-193",
        "new_appendable_file keeps what is there, and appends go behind it.",
        "A log that is continued loses what was in it.",
        "Open without truncating, and write at the end.",
        _HEADER,
    ),
    Rule(
        "FS-194",
        "tell of a file that was just opened for appending is its length.",
        "Offsets that a writer notes down are wrong by the length of the old content.",
        "Start at the length of the file, not at 0.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "FS-195",
        "new_appendable_file in a missing directory is NOT_FOUND.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND and create no parents.",
        _HEADER,
    ),
    Rule(
        "FS-196",
        "new_appendable_file on a directory is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION.",
        _HEADER,
    ),
    Rule(
        "FS-197",
        "new_appendable_file below a file is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file.",
        _HEADER,
    ),
    Rule(
        "FS-198",
        "Opening for appending and closing again changes nothing.",
        "Files are emptied by those who only look whether they can be written.",
        "Do not truncate, and do not write an empty object at close.",
        _HEADER,
    ),
)
