"""Checks of filesystems under load, and where the process runs out of something."""

from __future__ import annotations

import os
import random
import resource
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import BOTH, RAW, CheckList
from modular_tf.check.concurrency import expect_of_threads
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.filesystem.forked_process import expect_use_after_fork
from modular_tf.check.filesystem.ground import CONTENT, FilesystemGround
from modular_tf.check.filesystem.model_walk import OPERATIONS, OPERATIONS_ON_TWO, ModelWalk
from modular_tf.check.filesystem.process_end import expect_clean_end
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKS = CheckList("filesystem", "load")

_THREADS = 8
_STEPS = 200
_NAMES = ("a", "b", "d", "d/a", "d/b", "é")
_LARGEST = 4096


@CHECKS.check(
    "FS-321", Level.HARD, passes=BOTH, seconds=300,
    traits=("directories", "file-as-directory", "parents", "writes"),
)  # fmt: skip
def threads_keep_apart(ground: FilesystemGround) -> None:
    """Random work of eight threads, each in a directory of its own."""
    roots = [ground.make_dir(f"thread{number}") for number in range(_THREADS)]
    seeds = [ground.random.getrandbits(32) for _ in roots]
    expect_of_threads(
        [partial(_work, ground, root, seed) for root, seed in zip(roots, seeds, strict=True)],
        [partial(_work_alone, ground, seed) for seed in seeds],
    )


def _work_alone(ground: FilesystemGround, seed: int) -> None:
    _work(ground, ground.make_dir(f"alone-{seed}"), seed)


def _work(ground: FilesystemGround, root: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (to be repeated)
    walk = ModelWalk(FilesystemGround(ground.subject, root, ground.target, chance))
    for _ in range(min(_STEPS, int(ground.target.options.get("many", _STEPS)))):
        with suppress(Unsupported):
            _one_step(walk, chance)


def _one_step(walk: ModelWalk, chance: random.Random) -> None:
    path = chance.choice(_NAMES)
    match chance.randrange(5):
        case 0:
            pieces = [chance.randbytes(chance.randrange(_LARGEST)) for _ in range(3)]
            walk.write(path, pieces, append=chance.random() < 1 / 3)
        case 1:
            walk.read(path, chance.randrange(_LARGEST), chance.randrange(_LARGEST))
        case 2:
            walk.on_two_paths(chance.choice(OPERATIONS_ON_TWO), path, chance.choice(_NAMES))
        case _:
            walk.on_path(chance.choice(OPERATIONS), path)


@CHECKS.check("FS-322", Level.HARD, passes=BOTH, traits=("writes",), seconds=60)
def survives_without_descriptors(ground: FilesystemGround) -> None:
    """No descriptors are left: calls fail with a code, or work; afterwards all is as before."""
    path, other = ground.make_file(), ground.path("other")
    subject = ground.subject
    with _no_descriptors():
        opened = subject.new_random_access_file(path)
        made = subject.new_writable_file(other)
        subject.stat(path)
        with suppress(Unsupported):
            subject.get_children(ground.root)
        for answer in (opened, made):
            _take_down(answer.value)
    for answer, name in ((opened, "new_random_access_file"), (made, "new_writable_file")):
        expect(
            answer.code != Code.NOT_FOUND,
            f"{name} says that a file is missing where it could not be opened",
            found="NOT_FOUND",
        )
    expect_equal(ground.content(path), CONTENT, "the content of a file afterwards")
    expect_equal(ground.content(ground.make_file("later")), CONTENT, "what is written afterwards")


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


@CHECKS.check("FS-323", Level.ROBUST, passes=RAW, seconds=60)
def ends_without_cleanup(ground: FilesystemGround) -> None:
    """A process ends that has used the filesystem and not called its `cleanup`, as TensorFlow."""
    expect_clean_end(ground)


@CHECKS.check(
    "FS-330", Level.ROBUST, needs=("new_random_access_file", "read"), traits=("writes",), seconds=60
)
def serves_a_forked_child(ground: FilesystemGround) -> None:
    """Tried with a process that reads a file and forks a child that reads it too."""
    expect_use_after_fork(ground, "FS-330")
