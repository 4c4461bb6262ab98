"""Checks of load: threads, random work, lack of resources, end of process."""

from __future__ import annotations

import os
import random
import resource
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import HARD, RAW, ROBUST, WARNING, Suite
from modular_tf.check.endings import KEPT, expect_clean_end, expect_use_after_fork
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.filesystem.model import STEPS, perform
from modular_tf.check.filesystem.workspace import CONTENT, FilesystemWorkspace
from modular_tf.check.sequences import GROUP, Data, ListOf, Numbers, random_program
from modular_tf.check.under_load import expect_of_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.sequences import SequenceSession, StepKind

load = Suite("filesystem", "load", traits="writes", seconds=60)

_THREADS = 8
_STEPS = 200
_NAMES = ("a", "b", "d/a")
_LARGEST = 4096  # bytes; several are more than writers hold back

STEPS_OF_THREADS: Sequence[StepKind] = (
    *STEPS,
    (("write", "append"), (_NAMES, ListOf(Data(0, _LARGEST), 4))),
    (("read",), (_NAMES, Numbers(0, _LARGEST), Numbers(0, _LARGEST))),
)
"""What a step of a thread may be: those of short sequences, and some that take longer."""


@load.check(
    "FS-321", level=HARD, traits="directories file-as-directory parents writes", seconds=300
)
def threads_do_not_see_one_another(fs: FilesystemWorkspace) -> None:
    """Threads that work in directories of their own do not see one another.

    Otherwise: Programs that load data in parallel lose or mix it.
    Remedy: Guard what operations share; run the plugin with ThreadSanitizer.
    Source: filesystem.h, on threads
    """
    roots = [fs.make_dir(f"thread{number}") for number in range(_THREADS)]
    seeds = [fs.random.getrandbits(32) for _ in roots]
    expect_of_threads(
        [partial(_work, fs, root, seed) for root, seed in zip(roots, seeds, strict=True)],
        [partial(_work_alone, fs, seed) for seed in seeds],
        fs.access.journal,
    )


def _work_alone(fs: FilesystemWorkspace, seed: int) -> None:
    _work(fs, fs.make_dir(f"alone-{seed}"), seed)


def _work(fs: FilesystemWorkspace, root: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (to be repeated)
    steps = min(_STEPS, fs.target.options.many or _STEPS)
    perform(fs.below(root), random_program(STEPS_OF_THREADS, chance, steps))


@load.check("FS-322", level=HARD)
def no_descriptors_are_survived(fs: FilesystemWorkspace) -> None:
    """Where no descriptor is left, operations fail with a code of their own, and recover.

    Otherwise: A busy program crashes, or takes files for missing that are there.
    Remedy: Check every open and socket call, and report EMFILE as RESOURCE_EXHAUSTED.
    Source: POSIX, open; tf_status.h
    """
    path, other = fs.make_file(), fs.path("other")
    with _no_descriptors():
        opened = fs.new_random_access_file(path)
        made = fs.new_writable_file(other)
        fs.stat(path)
        with suppress(Unsupported):
            fs.get_children(fs.root)
        for answer in (opened, made):
            _take_down(answer.value)
    for answer, name in ((opened, "new_random_access_file"), (made, "new_writable_file")):
        expect(
            answer.code != Code.NOT_FOUND,
            f"{name} says that a file is missing where it could not be opened",
            found="NOT_FOUND",
        )
    expect_equal(fs.content(path), CONTENT, "the content of a file afterwards")
    expect_equal(fs.content(fs.make_file("later")), CONTENT, "what is written afterwards")


def _take_down(opened: object) -> None:
    """Close what was opened, if anything was."""
    for name in ("cleanup", "close"):
        if hasattr(opened, name):
            getattr(opened, name)()
            return


@contextmanager
def _no_descriptors() -> Iterator[None]:
    """Let no descriptor be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@load.check("FS-323", level=ROBUST, ways=RAW, traits="", severity=WARNING)
def a_process_ends_without_cleanup(fs: FilesystemWorkspace) -> None:
    """A process that never calls cleanup still ends cleanly.

    Otherwise: TensorFlow never calls it: every program that uses the plugin ends with a crash.
    Remedy: Stop threads and clients in an exit handler of the library, and own no pure virtual
    ends.
    Source: TensorFlow 2.21, observed

    TensorFlow never calls it.
    """
    expect_clean_end(fs.target, KEPT, fs.path("X"))


@load.check("FS-330", "new_random_access_file", "read", level=ROBUST, severity=WARNING)
def a_forked_child_is_served(fs: FilesystemWorkspace) -> None:
    """A child that is forked from a process can use the filesystem as its parent did, and ends.

    Otherwise: Data loaders that fork their workers hang without a word.
    Remedy: Start threads and connections anew in the child, by pthread_atfork or the process id.
    Source: POSIX, fork; published plugins, observed
    """
    expect_use_after_fork(fs, "FS-330")


sequences = Suite(
    "filesystem",
    GROUP,
    level=HARD,
    traits="directories file-as-directory parents writes",
    seconds=600,
)


@sequences.check("FS-320")
def sequences_keep_to_the_model(ground: SequenceSession) -> None:
    """Whatever operations came before, the next one does what a tree of files would do.

    Otherwise: Programs run sequences that no test covers, and lose data or crash in them.
    Remedy: Replay the sequence that is named, in a debugger if need be; it is as short as it gets.
    Source: the other rules of filesystems, taken together
    """
    ground.search()
