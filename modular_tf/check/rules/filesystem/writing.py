"""Rules of writing files: creating them, what is kept, and the order of closing."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_CREATING = "filesystem.h, new_writable_file"
_WRITING = "filesystem.h, TF_WritableFileOps"
_OBSERVED = "TensorFlow 2.21, observed"
_WRONG_CODE = "Callers tell cases apart by the code: they take the wrong branch, or give up."

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-170",
        "new_writable_file creates a missing file; after close it exists and is empty.",
        "Files that nothing is written to, such as _SUCCESS marks, never appear.",
        "Create the entry at opening or at close, even where nothing was appended.",
        _CREATING,
    ),
    Rule(
        "FS-171",
        "new_writable_file in a missing directory is NOT_FOUND.",
        _WRONG_CODE,
        "Set TF_NOT_FOUND and create no parents: callers do that where they want it.",
        _CREATING,
    ),
    Rule(
        "FS-172",
        "new_writable_file on a directory is FAILED_PRECONDITION.",
        "A directory is hidden behind a file, or the write fails much later.",
        "Look at the kind of the entry, and set TF_FAILED_PRECONDITION.",
        _CREATING,
    ),
    Rule(
        "FS-173",
        "new_writable_file below a file is FAILED_PRECONDITION.",
        _WRONG_CODE,
        "Set TF_FAILED_PRECONDITION where a parent is a file.",
        _CREATING,
    ),
    Rule(
        "FS-174",
        "new_writable_file on a file replaces its content.",
        "A checkpoint that is written again ends in the rest of the longer one before it.",
        "Truncate at opening, or replace the object at close.",
        _CREATING,
    ),
    Rule(
        "FS-175",
        "new_writable_file on a file empties it, even where nothing is appended.",
        "A file that was written anew still shows old content.",
        "Truncate at opening, or write an empty object at close.",
        _CREATING,
    ),
    Rule(
        "FS-176",
        "What was appended before close is the file's content.",
        "Nothing that is saved here can be trusted.",
        "Keep every byte of each append, in order.",
        _WRITING,
    ),
    Rule(
        "FS-177",
        "An append of 0 bytes is OK and changes nothing, whatever its buffer is.",
        "Writing an empty string fails, or crashes on a NULL buffer.",
        "Return OK before touching the buffer where n is 0.",
        _WRITING,
    ),
    Rule(
        "FS-178",
        "Big appends, many small ones, and bytes of any value arrive exactly and in order.",
        "Large or binary files are corrupted.",
        "Take the length from n, never from a NUL, and write until all bytes are written.",
        _WRITING,
    ),
    Rule(
        "FS-179",
        "tell is 0 for a new file, and the number of appended bytes after that.",
        "TFRecord and checkpoint indices point to wrong places.",
        "Count appended bytes, buffered ones too.",
        _WRITING,
    ),
    Rule(
        "FS-180",
        "tell changes nothing: asked twice it answers the same.",
        "Who asks for the position moves it, and leaves a hole in the file.",
        "Do not seek, flush or count in tell.",
        _WRITING,
    ),
    Rule(
        "FS-181",
        "tell returns -1 exactly when it sets another code than OK.",
        "TensorFlow stores -1 as the position, or takes a wrong one.",
        "Return -1 with a code on failure, and a position of 0 or more with TF_OK.",
        _WRITING,
    ),
    Rule(
        "FS-182",
        "After sync a second reader sees all bytes; after flush it should.",
        "Event files that others follow, such as TensorBoard's, stay empty while training runs.",
        "Write buffered bytes to the store in sync, and in flush where the store can show them.",
        _WRITING,
    ),
    Rule(
        "FS-183",
        "After close a new reader sees all bytes.",
        "The end of each file is missing.",
        "Flush buffers in close, and return only when the store has them.",
        _WRITING,
    ),
    Rule(
        "FS-184",
        "close and then cleanup end a file, and cleanup changes nothing in it.",
        "The usual end of each written file crashes, or damages it.",
        "Finish the file in close; release memory, and nothing else, in cleanup.",
        _WRITING,
    ),
    Rule(
        "FS-185",
        "cleanup without close releases everything.",
        "TensorFlow cleans abandoned files up without closing them: each leaks a descriptor.",
        "Close what is still open in cleanup, without reporting.",
        _OBSERVED,
        Severity.WARNING,
    ),
    Rule(
        "FS-186",
        "close does not run cleanup: the handle can still be cleaned up after it.",
        "The host calls cleanup after close: memory is freed twice.",
        "Leave plugin_file and its memory to cleanup.",
        _WRITING,
    ),
    Rule(
        "FS-187",
        "After a failing close cleanup is safe, and the failure is told.",
        "A full disk ends in a crash, or in a file that looks whole.",
        "Report what could not be written from close, and stay ready for cleanup.",
        _WRITING,
    ),
    Rule(
        "FS-188",
        "Where there is no room, append, flush or close says RESOURCE_EXHAUSTED, and close of an "
        "incomplete file is never OK.",
        "A truncated file is taken for a whole one.",
        "Set TF_RESOURCE_EXHAUSTED, and remember the failure until close.",
        _WRITING,
    ),
    Rule(
        "FS-189",
        "A closed file takes no more calls: close again is harmless, all else is refused.",
        "TensorFlow forwards such calls, and plugins crash on them; this host refuses them.",
        "Nothing to do for a plugin, if closing once works and keeps the content.",
        "design §9, our own host",
    ),
    Rule(
        "FS-190",
        "Two files are written by two threads at the same time without mixing.",
        "Parallel savers write into each other's files.",
        "Keep buffers and positions in the file's own memory.",
        "TensorFlow's threads",
    ),
    Rule(
        "FS-191",
        "Writing where nothing may be written is PERMISSION_DENIED.",
        "Users are told anything but that their rights are missing.",
        "Map the store's refusal to TF_PERMISSION_DENIED.",
        _CREATING,
        Severity.WARNING,
    ),
    Rule(
        "FS-336",
        "Writing and closing files again and again leaves no descriptors or memory behind.",
        "A program that saves often runs out of descriptors, and then cannot save.",
        "Close the temporary file, and free what an upload took, in cleanup at the latest.",
        _WRITING,
    ),
)
