"""Rules of `path_exists` and `paths_exist`."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "filesystem.h"
_TEST = "TensorFlow's test of filesystem plugins"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-256",
        "path_exists is OK for a file.",
        "gfile.exists says no, and programs overwrite or recreate what is there.",
        "Set OK for anything that stat would find.",
        _HEADER,
    ),
    Rule(
        "FS-353",
        "path_exists is OK for an empty directory.",
        "Programs create it again, or say that it is not there.",
        "Set OK for anything that stat would find.",
        _HEADER,
    ),
    Rule(
        "FS-257",
        "path_exists of a missing name is NOT_FOUND, in a missing directory too.",
        "Every other code is an error to gfile.exists, which raises instead of saying no.",
        "Map the store's answer for a missing key to NOT_FOUND.",
        _HEADER,
    ),
    Rule(
        "FS-258",
        "path_exists of a name below a file is FAILED_PRECONDITION.",
        "A wrong path looks like a missing file, which a caller then tries to create.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-259",
        "path_exists of the first letters of a name is NOT_FOUND.",
        "Programs find things that cannot be opened.",
        "Compare whole names: a listing by prefix also yields longer names.",
        _HEADER,
    ),
    Rule(
        "FS-260",
        "paths_exist is true where all paths exist, with and without statuses.",
        "Programs wait for files that are there.",
        "Return true, and set OK in each status where the array of statuses is not NULL.",
        _HEADER,
    ),
    Rule(
        "FS-261",
        "paths_exist sets each path's own code, in the order of the paths.",
        "The wrong path is taken for the missing one.",
        "Set statuses[i] to what path_exists says of paths[i]; do not stop at the first miss.",
        _HEADER,
    ),
    Rule(
        "FS-355",
        "paths_exist sets FAILED_PRECONDITION for a name below a file, beside OK and NOT_FOUND.",
        "A wrong path among many is taken for a missing file.",
        "Set statuses[i] to what path_exists says of paths[i].",
        _TEST,
    ),
    Rule(
        "FS-262",
        "paths_exist is false where one path is missing, without statuses too.",
        "Programs go on without a part of their data.",
        "Return whether every path exists; statuses may be NULL.",
        _HEADER,
    ),
    Rule(
        "FS-263",
        "paths_exist of no paths is true.",
        "Programs with nothing to look for fail.",
        "Start from true, and touch no status.",
        _HEADER,
    ),
    Rule(
        "FS-264",
        "paths_exist is true exactly where path_exists is OK for each, and sets every status.",
        "One of two answers about the same path is wrong.",
        "Build both on one function.",
        _HEADER,
    ),
    Rule(
        "FS-265",
        "paths_exist takes many paths and the same path twice, and leaves its array alone.",
        "The host's memory is changed, or paths beyond some number are not looked at.",
        "Read the array only; page through the store's listing.",
        _HEADER,
    ),
    Rule(
        "FS-333",
        "Operations on names in a container, volume or folder that does not exist return a status.",
        "A mistyped name ends the program, where an exception leaves the plugin.",
        "Catch every exception in every function that C calls, and set a status.",
        "filesystem.h; published plugins, observed",
    ),
)
