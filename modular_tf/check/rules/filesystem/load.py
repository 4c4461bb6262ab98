"""Rules of filesystems under load: threads, random work, lack of resources, end of process."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-321",
        "Threads that work in directories of their own do not see one another.",
        "Programs that load data in parallel lose or mix it.",
        "Guard what operations share; run the plugin with ThreadSanitizer.",
        "filesystem.h, on threads",
    ),
    Rule(
        "FS-322",
        "Where no descriptor is left, operations fail with a code of their own, and recover.",
        "A busy program crashes, or takes files for missing that are there.",
        "Check every open and socket call, and report EMFILE as RESOURCE_EXHAUSTED.",
        "POSIX, open; tf_status.h",
    ),
    Rule(
        "FS-323",
        "A process that never calls cleanup still ends cleanly.",
        "TensorFlow never calls it: every program that uses the plugin ends with a crash.",
        "Stop threads and clients in an exit handler of the library, and own no pure virtual ends.",
        "TensorFlow 2.21, observed",
        Severity.WARNING,
    ),
    Rule(
        "FS-330",
        "A child that is forked from a process can use the filesystem as its parent did, and ends.",
        "Data loaders that fork their workers hang without a word.",
        "Start threads and connections anew in the child, by pthread_atfork or the process id.",
        "POSIX, fork; published plugins, observed",
        Severity.WARNING,
    ),
    Rule(
        "FS-320",
        "Whatever operations came before, the next one does what a tree of files would do.",
        "Programs run sequences that no test covers, and lose data or crash in them.",
        "Replay the sequence that is named, in a debugger if need be; it is as short as it gets.",
        "the other rules of filesystems, taken together",
    ),
)
