"""Rules of deleting files, directories and trees."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_FILE = "filesystem.h, delete_file"
_DIRECTORY = "filesystem.h, delete_dir"
_TREE = "filesystem.h, delete_recursively"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-220",
        "delete_file deletes the file; a second call is NOT_FOUND.",
        "Old checkpoints pile up, or are listed after they were deleted.",
        "Delete the entry before OK, and forget what is cached of it.",
        _FILE,
    ),
    Rule(
        "FS-221",
        "delete_file of a missing name is NOT_FOUND.",
        _WRONG_CODE,
        "Look whether it is there where the store's delete does not say.",
        _FILE,
    ),
    Rule(
        "FS-222",
        "delete_file of a directory is FAILED_PRECONDITION, and the directory stays.",
        "A whole directory goes where one file was meant.",
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION.",
        _FILE,
    ),
    Rule(
        "FS-223",
        "delete_file below a file is FAILED_PRECONDITION, and the file stays.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file.",
        _FILE,
    ),
    Rule(
        "FS-224",
        "delete_dir deletes an empty directory; a second call is NOT_FOUND.",
        "Empty directories cannot be got rid of.",
        "Delete the entry before OK, and forget what is cached of it.",
        _DIRECTORY,
    ),
    Rule(
        "FS-225",
        "delete_dir of a missing name is NOT_FOUND.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND where nothing is there.",
        _DIRECTORY,
    ),
    Rule(
        "FS-226",
        "delete_dir of a directory with a file in it is FAILED_PRECONDITION, and all stays.",
        "Data is lost by a call that must never lose any.",
        "Look for children first, and set TF_FAILED_PRECONDITION where there is one.",
        _DIRECTORY,
    ),
    Rule(
        "FS-227",
        "delete_dir of a file, or below one, is FAILED_PRECONDITION, and the file stays.",
        "A file goes where a directory was meant.",
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION.",
        _DIRECTORY,
    ),
    Rule(
        "FS-228",
        "delete_recursively deletes a tree with names of all kinds, and nothing beside it.",
        "Trees are left in pieces, or neighbours go with them.",
        "Delete files, then directories from the deepest up; or leave the slot NULL.",
        _TREE,
    ),
    Rule(
        "FS-229",
        "delete_recursively of a missing name is NOT_FOUND, with 0 files and 1 directory left.",
        "Callers cannot tell that the walk did not start.",
        "Set undeleted_files to 0 and undeleted_dirs to 1 where nothing can be walked.",
        _TREE,
    ),
    Rule(
        "FS-230",
        "delete_recursively of a file deletes it, with 0 and 0 left.",
        "rmtree of a path that happens to be a file fails.",
        "Delete the file, or leave the slot NULL: the host does so.",
        "TensorFlow 2.21, observed",
    ),
    Rule(
        "FS-231",
        "delete_recursively below a file is FAILED_PRECONDITION, with 0 files and 1 directory "
        "left.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION and the counters 0 and 1.",
        _TREE,
    ),
    Rule(
        "FS-232",
        "delete_recursively skips what cannot be deleted, counts it and returns its code.",
        "One file keeps a whole tree from being deleted, and no message names it.",
        "Note the first failure, count, go on with the siblings, and set its code at the end.",
        _TREE,
        Severity.WARNING,
    ),
    Rule(
        "FS-233",
        "delete_recursively always writes both counters, and both are 0 with OK.",
        "TensorFlow shows stack garbage as the number of files left.",
        "Set both counters first of all.",
        _TREE,
    ),
    Rule(
        "FS-234",
        "delete_recursively deletes a link, and nothing behind it.",
        "Data outside of the tree is lost.",
        "Do not follow symbolic links: lstat, unlinkat. The default of TensorFlow follows them.",
        _TREE,
        Severity.WARNING,
    ),
)
