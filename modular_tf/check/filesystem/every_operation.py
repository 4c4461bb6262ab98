"""Each operation once: where it must work, and where it must fail."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.filesystem.access import MOVES, QUESTIONS, REMOVALS, OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

Call = tuple[str, "Answer"]
"""An operation, and what it returned."""

_CONTENT = b"content of each file"


def successes(fs: FilesystemWorkspace) -> Iterator[Call]:
    """Call each operation that is offered so that it should succeed."""
    uri, other, directory = (fs.path(name) for name in ("each-file", "each-copy", "each-dir"))
    for slot in ("new_writable_file", "new_appendable_file"):
        yield from _called(
            fs, slot, uri, uses=[("append", _CONTENT), ("tell",), ("flush",), ("sync",), ("close",)]
        )
    yield from _called(fs, "new_random_access_file", uri, uses=[("read", 0, 4)])
    yield from _called(fs, "new_read_only_memory_region_from_file", uri)
    for slot in ("path_exists", "stat", "get_file_size"):
        yield from _called(fs, slot, uri)
    yield from _called(fs, "copy_file", uri, other)
    if fs.offers("copy_file"):
        yield from _called(fs, "rename_file", other, f"{other}-renamed")
    yield from _called(fs, "create_dir", directory)
    for slot in ("is_directory", "get_children", "delete_dir"):
        yield from _called(fs, slot, directory)
    yield from _called(fs, "recursively_create_dir", f"{directory}-deep/er")
    yield from _called(fs, "delete_recursively", f"{directory}-deep")
    yield from _called(fs, "get_matching_paths", f"{fs.root}/each-*")
    yield from _called(fs, "delete_file", uri)


def failures(fs: FilesystemWorkspace) -> Iterator[Call]:
    """Call each operation that is offered so that it should fail: on names of nothing."""
    for slot in (*QUESTIONS, *REMOVALS):
        yield from _called(fs, slot, fs.missing())
    for slot in MOVES:
        yield from _called(fs, slot, fs.missing(), fs.path("Y"))
    for slot in ("create_dir", "new_writable_file", "new_appendable_file"):
        yield from _called(fs, slot, fs.below_missing())


def codes_of_all(fs: FilesystemWorkspace) -> dict[str, int]:
    """Return the code of each operation by its slot, the last one where it has two."""
    return {slot: answer.code for slot, answer in successes(fs)}


def _called(
    fs: FilesystemWorkspace, slot: str, *uris: str, uses: list[tuple[Any, ...]] | None = None
) -> Iterator[Call]:
    """Call an operation where it is offered, and what it opens by `uses`; clean that up."""
    answer = _tried(fs, slot, partial(fs.call, slot, *uris))
    if answer is None:
        return
    yield slot, answer
    file = answer.value
    if isinstance(file, OpenFile):
        for use, *arguments in uses or [] if answer.ok else []:
            used = _tried(fs, use, partial(file.call, use, *arguments))
            if used is not None:
                yield use, used
        file.cleanup()


def _tried(fs: FilesystemWorkspace, slot: str, call: Callable[[], Answer]) -> Answer | None:
    try:
        return call() if fs.offers(slot) else None
    except (Unsupported, Blocked):
        return None


def is_success(answer: Answer) -> bool:
    """Return whether an answer is no failure; the end of a file is none."""
    return answer.code in {Code.OK, Code.OUT_OF_RANGE}
