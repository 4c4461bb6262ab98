"""Each operation once: where it must work, and where it must fail."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Blocked, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.subject import Writer

    Steps = tuple[tuple[str, Callable[[], Answer]], ...]

Call = tuple[str, "Answer"]
"""An operation, and what it returned."""

_CONTENT = b"content of each file"


def successes(ground: FilesystemGround) -> Iterator[Call]:
    """Call each operation that the subject offers so that it should succeed."""
    subject = ground.subject
    uri, other, directory = (ground.path(name) for name in ("each-file", "each-copy", "each-dir"))
    yield from _write(ground, uri, "new_writable_file")
    yield from _write(ground, uri, "new_appendable_file")
    yield from _read(ground, uri)
    yield from _ask(ground, "new_read_only_memory_region_from_file", uri)
    for slot in ("path_exists", "stat", "get_file_size"):
        yield from _ask(ground, slot, uri)
    yield from _ask(ground, "copy_file", uri, other)
    if subject.offers("copy_file"):
        yield from _ask(ground, "rename_file", other, f"{other}-renamed")
    yield from _ask(ground, "create_dir", directory)
    for slot in ("is_directory", "get_children", "delete_dir"):
        yield from _ask(ground, slot, directory)
    yield from _ask(ground, "recursively_create_dir", f"{directory}-deep/er")
    yield from _ask(ground, "delete_recursively", f"{directory}-deep")
    yield from _ask(ground, "get_matching_paths", f"{ground.root}/each-*")
    yield from _ask(ground, "delete_file", uri)


def failures(ground: FilesystemGround) -> Iterator[Call]:
    """Call each operation that the subject offers so that it should fail: on names of nothing."""
    missing, other = ground.missing(), ground.path("Y")
    for slot in (
        "new_random_access_file",
        "new_read_only_memory_region_from_file",
        "delete_file",
        "delete_dir",
        "delete_recursively",
        "path_exists",
        "stat",
        "is_directory",
        "get_file_size",
        "get_children",
    ):
        yield from _ask(ground, slot, missing)
    for slot in ("rename_file", "copy_file"):
        yield from _ask(ground, slot, missing, other)
    for slot in ("create_dir", "new_writable_file", "new_appendable_file"):
        yield from _ask(ground, slot, ground.below_missing())


def codes_of_all(ground: FilesystemGround) -> dict[str, int]:
    """Return the code of each operation by its slot, the last one where it has two."""
    return {slot: answer.code for slot, answer in successes(ground)}


def _ask(ground: FilesystemGround, slot: str, *uris: str) -> Iterator[Call]:
    """Call an operation on paths where it is offered; what it opens is closed."""
    if not ground.subject.offers(slot):
        return
    try:
        answer: Answer = getattr(ground.subject, slot)(*uris)
    except (Unsupported, Blocked):
        return
    yield slot, answer
    _close(answer)


def _write(ground: FilesystemGround, uri: str, slot: str) -> Iterator[Call]:
    for _, opened in _ask(ground, slot, uri):
        yield slot, opened
        if opened.ok and opened.value is not None:
            yield from _steps(ground, _uses_of(opened.value))


def _uses_of(writer: Writer) -> Steps:
    return (
        ("append", partial(writer.append, _CONTENT)),
        ("tell", writer.tell),
        ("flush", writer.flush),
        ("sync", writer.sync),
        ("close", writer.close),
    )


def _steps(ground: FilesystemGround, steps: Steps) -> Iterator[Call]:
    for slot, step in steps:
        if ground.subject.offers(slot):
            try:
                yield slot, step()
            except Unsupported:
                continue


def _read(ground: FilesystemGround, uri: str) -> Iterator[Call]:
    for slot, opened in _ask(ground, "new_random_access_file", uri):
        yield slot, opened
        if opened.ok and opened.value is not None:
            yield from _steps(ground, (("read", partial(opened.value.read, 0, 4)),))


def _close(answer: Answer) -> None:
    """Clean up a file or region that an answer brought."""
    for method in ("cleanup", "close"):
        end = getattr(answer.value, method, None)
        if end is not None:
            end()
            return


def is_success(answer: Answer) -> bool:
    """Return whether an answer is no failure; the end of a file is none."""
    return answer.code in {Code.OK, Code.OUT_OF_RANGE}
