"""Rules of `get_children`."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "filesystem.h"
_TEST = "TensorFlow's test of filesystem plugins"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-279",
        "get_children lists each file and directory by its name alone, in any order.",
        "Listings and globs miss entries, or find some that are not there.",
        "Return the last part of each path, for files and directories alike.",
        _HEADER,
    ),
    Rule(
        "FS-280",
        "get_children of an empty directory is OK with 0 entries.",
        "Listing or deleting an empty directory fails.",
        "Return 0 and set OK; the directory itself is no entry.",
        _HEADER,
    ),
    Rule(
        "FS-281",
        "get_children of a file is FAILED_PRECONDITION.",
        "A file passes for an empty directory.",
        "Look what the path is before it is listed.",
        _TEST,
    ),
    Rule(
        "FS-282",
        "get_children of a missing directory is NOT_FOUND.",
        "A missing directory looks like an empty one: a program finds no data and continues.",
        "An empty listing of a prefix says that nothing is there: answer NOT_FOUND.",
        _HEADER,
    ),
    Rule(
        "FS-283",
        "get_children of a name below a file is FAILED_PRECONDITION.",
        "The caller takes a wrong path for a missing directory.",
        "Answer ENOTDIR with FAILED_PRECONDITION (TF_SetStatusFromIOError does).",
        _TEST,
    ),
    Rule(
        "FS-284",
        "get_children returns exactly -1 where it fails, and leaves no entries to be freed.",
        "Every other count makes TensorFlow read entries that are not there.",
        "Free what was listed so far, leave the array alone and return -1.",
        _HEADER,
    ),
    Rule(
        "FS-285",
        "A positive count comes with an array, and each entry in it is set.",
        "TensorFlow crashes on a NULL; here the listing fails with INTERNAL.",
        "Fill every entry that is counted.",
        _HEADER,
    ),
    Rule(
        "FS-286",
        'Names of children are not empty, not "." or "..", and hold no slash.',
        "TensorFlow's recursive delete runs in circles or out of the tree; a slash at the end of "
        "a directory's name hides it from globs.",
        "Skip the entries for the directory itself and its parent; return bare names.",
        _HEADER,
    ),
    Rule(
        "FS-287",
        "get_children lists each child once, and nothing below the children.",
        "Files are read twice, or paths appear that do not exist.",
        "List one level; merge what the store lists both as an object and as a prefix.",
        _HEADER,
    ),
    Rule(
        "FS-288",
        "Each child, joined to the directory, exists.",
        "Walks fail at what the listing itself has named.",
        "Return names as they are stored: not escaped, not shortened.",
        _HEADER,
    ),
    Rule(
        "FS-289",
        "get_children lists thousands of entries completely.",
        "What is behind the store's first page is lost without a word.",
        "Go on with the continuation token until the listing is complete.",
        _HEADER,
    ),
    Rule(
        "FS-290",
        "Hidden names, blanks, non-ASCII bytes and glob characters are listed as they are.",
        "Such files cannot be found, opened or deleted through a listing.",
        "Do not escape, quote or decode names; a path with a slash at its end is the same one.",
        _HEADER,
    ),
    Rule(
        "FS-291",
        "Each entry and the array are blocks of their own that plugin_memory_free takes.",
        "The host frees each entry and then the array: one block for all is freed twice.",
        "Allocate the array and every entry with what plugin_memory_free frees.",
        _HEADER,
    ),
    Rule(
        "FS-292",
        "get_children may run in many threads at once.",
        "TensorFlow's glob lists in parallel: names get lost or the process crashes.",
        "Keep no listing in the filesystem's own state without a lock.",
        "TensorFlow 2.21, observed",
    ),
)
