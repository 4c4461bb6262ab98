"""Rules of reading files: opening them, and what a read gives."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h, new_random_access_file and read"
_OBSERVED = "TensorFlow 2.21, observed"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-150",
        "new_random_access_file opens a file that is there, and sets plugin_file.",
        "No file of this filesystem can be read.",
        "Store the open file in TF_RandomAccessFile.plugin_file and set OK.",
        _HEADER,
    ),
    Rule(
        "FS-151",
        "new_random_access_file of a missing name is NOT_FOUND and leaves plugin_file alone.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND, and plugin_file only once the file is open.",
        _HEADER,
    ),
    Rule(
        "FS-152",
        "new_random_access_file of a name in a missing directory is NOT_FOUND.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND: what a missing parent holds is missing too.",
        _HEADER,
    ),
    Rule(
        "FS-153",
        "new_random_access_file of a directory is FAILED_PRECONDITION.",
        "The first read fails instead, where programs do not expect it.",
        "Look at the kind of the entry at opening, and set TF_FAILED_PRECONDITION.",
        _HEADER,
    ),
    Rule(
        "FS-154",
        "new_random_access_file of a name below a file is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file; TF_SetStatusFromIOError does so for "
        "ENOTDIR.",
        _HEADER,
    ),
    Rule(
        "FS-155",
        "new_random_access_file of an empty path is NOT_FOUND or FAILED_PRECONDITION.",
        "A path that was never set opens something, or crashes the process.",
        "Refuse the empty path before looking anything up.",
        "filesystem.h, new_random_access_file",
    ),
    Rule(
        "FS-156",
        "A read of a whole file returns its length, sets OK and gives its bytes.",
        "Every reader of this filesystem gets wrong data.",
        "Copy n bytes from the offset into the buffer, return n and set OK.",
        _HEADER,
    ),
    Rule(
        "FS-157",
        "A read starts at the offset that it is given.",
        "Formats with an index, such as checkpoints and TFRecord, are read as garbage.",
        "Seek for each call, or read with pread; do not go on where the last read ended.",
        _HEADER,
    ),
    Rule(
        "FS-158",
        "A read across the end returns the bytes that there are, and sets OUT_OF_RANGE.",
        "TensorFlow reads until OUT_OF_RANGE: the last block of each file is lost.",
        "Copy what there is, return its length and set TF_OUT_OF_RANGE.",
        _HEADER,
    ),
    Rule(
        "FS-159",
        "A read at or behind the end returns 0 and sets OUT_OF_RANGE.",
        "Reading a file to its end fails, or never ends.",
        "Compare the offset with the length first; return 0 and set TF_OUT_OF_RANGE.",
        _HEADER,
    ),
    Rule(
        "FS-160",
        "A read of 0 bytes returns 0 and sets OK.",
        "Callers that read what a size field says fail where it says 0.",
        "Return 0 with TF_OK before anything else where n is 0.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "FS-161",
        "A read of an empty file returns 0 and sets OUT_OF_RANGE.",
        "Empty files, such as _SUCCESS marks, cannot be read.",
        "An empty file is read as any other: at its end.",
        _HEADER,
    ),
    Rule(
        "FS-162",
        "A read that gives fewer bytes than asked for never sets OK.",
        "TensorFlow's own copy_file loops for ever on it.",
        "Go on until all n bytes are there, or set TF_OUT_OF_RANGE at the end of the file.",
        _HEADER,
    ),
    Rule(
        "FS-163",
        "A read writes and returns at most n bytes.",
        "TensorFlow believes the count: it hands out memory behind the buffer.",
        "Bound each copy into the buffer by n.",
        _HEADER,
    ),
    Rule(
        "FS-164",
        "A failing read returns -1, with a code other than OK and OUT_OF_RANGE.",
        "The bytes of a failed read are taken for data.",
        "Return -1 whenever the code is neither TF_OK nor TF_OUT_OF_RANGE.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "FS-165",
        "A big file that holds all byte values is read back exactly, in pieces of any size.",
        "Large files are corrupted: models load and give wrong results.",
        "Treat content as bytes, and keep offsets in 64 bits.",
        _HEADER,
    ),
    Rule(
        "FS-166",
        "One handle serves several threads at once, and two handles of a file know nothing of "
        "each other.",
        "tf.data reads with many threads: records are mixed up under load only.",
        "Keep no position in the handle; guard what threads share.",
        "filesystem.h, read; TensorFlow's threads",
    ),
    Rule(
        "FS-167",
        "A reader that is open while its file is deleted or replaced keeps the old bytes.",
        "Nothing demands it; readers of this store see another file, or an error, half way.",
        "Say in the plugin's documents what becomes of open readers.",
        "POSIX, as a habit of local files",
        Severity.NOTE,
    ),
    Rule(
        "FS-168",
        "Opening, and failing to open, again and again leaves no descriptor behind.",
        "Long training runs end with too many open files.",
        "Release everything in cleanup, and in new_random_access_file where it fails: a failed "
        "open is not cleaned up.",
        _OBSERVED,
    ),
    Rule(
        "FS-169",
        "The message of a failing open names the path.",
        "Users read that something was not found, and not what.",
        "Put the path into the message: 'PATH; No such file or directory'.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "FS-331",
        "Reading again and again leaves no descriptors, mappings or memory behind.",
        "A long job runs out of descriptors, and then every open of the process fails.",
        "Keep one connection for each file or pool, and release what a request took.",
        "filesystem.h, read",
    ),
    Rule(
        "FS-332",
        "One read of several megabytes gives all of them.",
        "Reading a whole file in one call crashes the program, or gives less than there is.",
        "Grow buffers by what arrives; loop over short answers of the store.",
        "filesystem.h, read; published plugins, observed",
    ),
)
