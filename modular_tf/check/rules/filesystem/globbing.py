"""Rules of `get_matching_paths`."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "filesystem.h"
_DESIGN = "design §9"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-293",
        "get_matching_paths finds exactly the files that match, as URIs like the pattern.",
        "Datasets given as a pattern are incomplete, or cannot be opened.",
        "Return scheme, host and path of each match; leave the slot NULL to let the host do it.",
        _HEADER,
    ),
    Rule(
        "FS-294",
        "A pattern that matches nothing is OK with 0 paths, in a missing directory too.",
        "A program that asks whether there are files gets an error instead of none.",
        "Return 0 and set OK.",
        _HEADER,
    ),
    Rule(
        "FS-295",
        "A pattern without wildcards matches its own path where that exists, else nothing.",
        "A plain file name cannot stand where a pattern may.",
        "Answer by path_exists; an empty pattern matches nothing.",
        _HEADER,
    ),
    Rule(
        "FS-296",
        r"`?`, `[ab]`, `[^a]`, `[a-c]` and a backslash mean what the header says.",
        "Patterns find too much or too little.",
        "Follow the grammar in the header, as fnmatch(3) does with FNM_PATHNAME.",
        _HEADER,
    ),
    Rule(
        "FS-297",
        "A wildcard stays within one level, and a pattern matches whole names.",
        "Patterns find files of other directories, or names that only begin alike.",
        "Match level by level, from the first letter of a name to its last.",
        _HEADER,
    ),
    Rule(
        "FS-298",
        "Every match exists, and none is there twice.",
        "Files are read twice, or opening a match fails.",
        "Return paths as path_exists takes them, each once.",
        _HEADER,
    ),
    Rule(
        "FS-299",
        "A failing get_matching_paths returns -1 with an error; every path counted is set.",
        "TensorFlow reads entries that are not there.",
        "Return -1 exactly where the status is not OK; fill every entry that is counted.",
        _HEADER,
    ),
    Rule(
        "FS-300",
        "A wildcard in front of the path is INVALID_ARGUMENT, and no crash.",
        "TensorFlow's own glob crashes on it.",
        "Refuse wildcards in the host part of a URI.",
        _DESIGN,
    ),
)
