"""Rules of `stat`, `is_directory` and `get_file_size`."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"
_TEST = "TensorFlow's test of filesystem plugins"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-266",
        "stat of a file gives its length and says that it is no directory.",
        "Readers that ask for the length first read too little or fail.",
        "Fill length and is_directory, then report OK.",
        _HEADER,
    ),
    Rule(
        "FS-354",
        "stat of an empty file gives the length 0 and says that it is no directory.",
        "Empty markers such as _SUCCESS are taken for missing, or for directories.",
        "Do not tell a directory by the length 0.",
        _HEADER,
    ),
    Rule(
        "FS-267",
        "stat of a directory says so, in a byte that is 0 or 1.",
        "Walks do not enter it; a byte that is neither is undefined behaviour in C++.",
        "Set is_directory to true or false, never to flag bits.",
        _HEADER,
    ),
    Rule(
        "FS-268",
        "stat of a missing name is NOT_FOUND and leaves the struct alone.",
        "Callers that see half-filled statistics take nothing for an empty file.",
        "Fill the struct at the end, where all is known.",
        _HEADER,
    ),
    Rule(
        "FS-350",
        "stat of a name below a file is FAILED_PRECONDITION and leaves the struct alone.",
        "The caller takes a wrong path for a missing file.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-269",
        "stat gives the time of the last change in nanoseconds since 1970.",
        "Caches that compare times keep old content, or fetch all anew.",
        "Multiply seconds by 1000000000; count from 1970, in UTC.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "FS-270",
        "stat gives the new length once a longer file is closed, and never a negative one.",
        "Readers miss the end of a file; TensorFlow shows -1 as 18446744073709551615.",
        "Drop what is cached about a file when it is written.",
        _HEADER,
    ),
    Rule(
        "FS-271",
        "is_directory of a directory is OK and true.",
        "Walks do not enter it.",
        "Return true and set OK.",
        _HEADER,
    ),
    Rule(
        "FS-272",
        "is_directory of a file is false, with FAILED_PRECONDITION.",
        "TensorFlow reads the status alone: with OK it calls the file a directory.",
        "Return false and set FAILED_PRECONDITION, though the header would take OK.",
        _TEST,
    ),
    Rule(
        "FS-273",
        "is_directory of a missing name is NOT_FOUND and false.",
        "Walks enter what is not there.",
        "Look whether it exists first: an empty listing is no directory.",
        _HEADER,
    ),
    Rule(
        "FS-351",
        "is_directory of a name below a file is FAILED_PRECONDITION.",
        "The caller takes a wrong path for a missing directory.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-274",
        "is_directory returns true with OK only.",
        "One host goes by the status, another by the value: they see different trees.",
        "Return false on every path that sets another code.",
        _HEADER,
    ),
    Rule(
        "FS-275",
        "get_file_size is a file's length in bytes.",
        "Readers that ask for the size first read too little or fail.",
        "Return the length, and set OK.",
        _HEADER,
    ),
    Rule(
        "FS-356",
        "get_file_size of an empty file is 0.",
        "Empty markers such as _SUCCESS are taken for missing.",
        "Return 0 and set OK; 0 is no sign of a failure.",
        _HEADER,
    ),
    Rule(
        "FS-276",
        "get_file_size of a directory is FAILED_PRECONDITION.",
        "A directory passes for an empty file.",
        "Refuse a directory with FAILED_PRECONDITION.",
        _HEADER,
    ),
    Rule(
        "FS-277",
        "get_file_size of a missing name is NOT_FOUND.",
        "A missing file passes for an empty one.",
        "Set NOT_FOUND before anything is returned.",
        _HEADER,
    ),
    Rule(
        "FS-352",
        "get_file_size of a name below a file is FAILED_PRECONDITION.",
        "The caller takes a wrong path for a missing file.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-278",
        "get_file_size and is_directory say what stat says.",
        "One of two answers about the same path is wrong.",
        "Build the three on one function, or leave the two slots NULL.",
        _HEADER,
    ),
)
