"""What TensorFlow's calls do: the functions that `native/core/bridge_upcalls.h` declares.

TensorFlow calls from any of its threads. No exception may leave a function here: each becomes a
code and a message of the answer.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from modular_tf.errors import (
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
)
from modular_tf.events import EventLog
from modular_tf.filesystem.files import RandomAccessFile, discard, give_up, is_stored_by_close
from modular_tf.filesystem.plugin_files import (
    PluginRandomAccessFile,
    PluginWritableFile,
    fresh_bytes,
)
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.native.ffi import ffi
from modular_tf.native.strings import decode
from modular_tf.tensorflow import open_files, recent_looks
from modular_tf.tensorflow.answers import (
    answer_within,
    copied,
    note_interrupt,
    set_failure,
    set_names,
    set_text,
    too_late,
)
from modular_tf.tensorflow.bindings import Binding, binding_of
from modular_tf.tensorflow.open_files import OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import WritableFile

    _PathOperation = Callable[[Binding, str, str, Any], None]

_log = EventLog("tensorflow")
_WAIT_S = 0.001  # for another thread's use of the same file
_OPENING = {b"new_random_access_file", b"new_writable_file", b"new_appendable_file"}
_ENDING = {"close", "give_up", "release"}


# -- operations on paths --------------------------------------------------------------------------


def _added(binding: Binding, plugin: str, file: RandomAccessFile | WritableFile) -> int:
    return open_files.add(OpenFile(file, plugin, binding.limit_s))


def _open_reader(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    filesystem = binding.filesystem
    file = recent_looks.open_file(filesystem, uri)
    answer.numbers[0] = _added(binding, filesystem.plugin, file)
    answer.numbers[1] = not is_of_this_machine(filesystem.scheme)
    if isinstance(file, PluginRandomAccessFile) and binding.limit_s is None:
        answer.reader = file.native_reader
        set_text(answer, f"read {uri!r} (plugin {filesystem.plugin})".encode(errors="replace"))


def _open_writer(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    filesystem = binding.filesystem
    file = filesystem.new_writable_file(uri)
    answer.numbers[0] = _added(binding, filesystem.plugin, file)


def _open_appender(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    filesystem = binding.filesystem
    file = filesystem.new_appendable_file(uri)
    answer.numbers[0] = _added(binding, filesystem.plugin, file)


def _open_region(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    with binding.filesystem.new_read_only_memory_region_from_file(uri) as region:
        view = region.view()
        answer.text = copied(ffi.from_buffer("char[]", view), len(view))
        answer.numbers[0] = len(view)


def _delete_recursively(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    left = binding.filesystem.delete_recursively(uri)
    answer.numbers[0], answer.numbers[1] = left


def _path_exists(binding: Binding, uri: str, _other: str, _answer: Any) -> None:
    if not recent_looks.exists(binding.filesystem, uri):
        raise NotFoundError(f"{uri!r} does not exist", path=uri, operation="path_exists")


def _stat(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    found = recent_looks.stat(binding.filesystem, uri)
    answer.numbers[0] = found.length
    answer.numbers[1] = found.mtime_nsec
    answer.numbers[2] = found.is_directory


def _is_directory(binding: Binding, uri: str, _other: str, _answer: Any) -> None:
    if not recent_looks.is_directory(binding.filesystem, uri):
        raise FailedPreconditionError(f"{uri!r} is a file", path=uri, operation="is_directory")


def _get_file_size(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    answer.numbers[0] = recent_looks.file_size(binding.filesystem, uri)


def _get_children(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    names = recent_looks.children(binding.filesystem, uri)
    # Only Python asks TensorFlow for this, and fails with a UnicodeDecodeError that names nothing.
    if (odd := next((name for name in names if not _is_unicode(name)), None)) is not None:
        raise FailedPreconditionError(
            f"get_children {uri!r}: the name {os.fsencode(odd)!r} in it is not UTF-8;"
            " of such names TensorFlow gives lists by tf.io.matching_files only",
            path=uri,
            operation="get_children",
        )
    set_names(answer, names)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _get_matching_paths(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    found = recent_looks.matching_paths(binding.filesystem, uri)
    set_names(answer, [binding.theirs(path) for path in found])


def _on_one_path(name: str) -> _PathOperation:
    """Return the operation of a filesystem that takes a path and gives nothing."""
    return lambda binding, uri, _other, _answer: getattr(binding.filesystem, name)(uri)


def _on_two_paths(name: str) -> _PathOperation:
    def call(binding: Binding, uri: str, other: str, _answer: Any) -> None:
        getattr(binding.filesystem, name)(uri, binding.ours(other))

    return call


_LOOKING: dict[bytes, _PathOperation] = {
    b"new_random_access_file": _open_reader,
    b"new_read_only_memory_region_from_file": _open_region,
    b"path_exists": _path_exists,
    b"stat": _stat,
    b"is_directory": _is_directory,
    b"get_file_size": _get_file_size,
    b"get_children": _get_children,
    b"get_matching_paths": _get_matching_paths,
}
_CHANGING: dict[bytes, _PathOperation] = {
    b"new_writable_file": _open_writer,
    b"new_appendable_file": _open_appender,
    b"create_dir": _on_one_path("create_dir"),
    b"recursively_create_dir": _on_one_path("recursively_create_dir"),
    b"delete_file": _on_one_path("delete_file"),
    b"delete_dir": _on_one_path("delete_dir"),
    b"delete_recursively": _delete_recursively,
    b"rename_file": _on_two_paths("rename_file"),
    b"copy_file": _on_two_paths("copy_file"),
}
_PATH_OPERATIONS = _LOOKING | {
    name: recent_looks.change()(operation) for name, operation in _CHANGING.items()
}


@ffi.def_extern(onerror=note_interrupt)
def mtf_upcall_path(operation: Any, path: Any, other: Any, answer: Any) -> None:
    """Run an operation of a filesystem."""
    name = ffi.string(operation)
    uri = None
    try:
        uri = decode(ffi.string(path))
        second = decode(ffi.string(other)) if other else ""
        binding = binding_of(uri)
        if binding.limit_s is None:
            _PATH_OPERATIONS[name](binding, binding.ours(uri), second, answer)
        else:
            _ask_in_time(name, binding, uri, second, answer)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        set_failure(answer, error, name.decode(), uri)


def _ask_in_time(name: bytes, binding: Binding, uri: str, other: str, answer: Any) -> None:
    def on_late(own: Any) -> None:
        opened = open_files.remove(own.numbers[0]) if name in _OPENING else None
        if opened is not None:
            opened.drop()

    perform = partial(_PATH_OPERATIONS[name], binding, binding.ours(uri), other)
    limit_s = cast("float", binding.limit_s)
    if not answer_within(limit_s, perform, answer, lambda: None, on_late):
        plugin = binding.service.owner(binding.scheme) or ""
        raise too_late(name.decode(), uri, plugin, limit_s)


# -- operations on files --------------------------------------------------------------------------


def _checked_count(file: RandomAccessFile, count: int, size: int) -> int:
    if not 0 <= count <= size:
        raise InternalError(f"read {file.uri!r}: {count} bytes, where {size} were asked for")
    return count


def _in_time(
    operation: str, number: int, opened: OpenFile, perform: Callable[[Any], None], answer: Any
) -> None:
    """Have an operation of a file fill in an answer within the file's limit.

    Raises:
        DeadlineExceededError: It took longer, or one before it did.
    """
    try:
        opened.check(operation)
    except DeadlineExceededError:
        if operation in _ENDING:
            open_files.remove(number)
            opened.drop()
        raise
    limit_s = cast("float", opened.limit_s)
    if not answer_within(
        limit_s, perform, answer, opened.leave_call, lambda _own: opened.end_call()
    ):
        raise too_late(operation, opened.file.uri, opened.plugin, limit_s)


@ffi.def_extern(onerror=note_interrupt)
def mtf_upcall_read(number: int, offset: int, buffer: Any, size: int, answer: Any) -> None:
    """Read into memory of TensorFlow's."""
    opened = None
    try:
        opened = open_files.get(number)
        file = cast("RandomAccessFile", opened.file)
        if opened.limit_s is None:
            count = file.readinto(offset, ffi.buffer(buffer, size))
            answer.numbers[0] = _checked_count(file, count, size)
        else:
            _read_in_time(number, opened, offset, buffer, size, answer)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        set_failure(answer, error, "read", None if opened is None else opened.file.uri)


def _read_in_time(
    number: int, opened: OpenFile, offset: int, buffer: Any, size: int, answer: Any
) -> None:
    """Read into memory of our own, since a call that is left behind goes on with it."""
    file = cast("RandomAccessFile", opened.file)
    data, view = fresh_bytes(size)

    def read(own: Any) -> None:
        own.numbers[0] = _checked_count(file, file.readinto(offset, view[:size]), size)

    _in_time("read", number, opened, read, answer)
    ffi.memmove(buffer, data, answer.numbers[0])


def _bytes_for(opened: OpenFile, data: Any, size: int) -> Any:
    """Return what a file is to append: TensorFlow's memory where nobody sees it after the call."""
    buffer = ffi.buffer(data, size)
    is_kept = opened.limit_s is not None or not isinstance(opened.file, PluginWritableFile)
    return bytes(buffer) if is_kept else buffer


@ffi.def_extern(onerror=note_interrupt)
def mtf_upcall_file(operation: Any, number: int, data: Any, size: int, answer: Any) -> None:
    """Run an operation of an open file."""
    name = ffi.string(operation).decode()
    opened = None
    try:
        opened = open_files.get(number)
        # A copy, since a filesystem of Python may keep it; TensorFlow changes and frees its own.
        block = _bytes_for(opened, data, size) if data else b""
        perform = _FILE_OPERATIONS[name]
        if opened.limit_s is None or name == "wait":
            perform(number, opened.file, block, answer)
        else:
            asked = partial(perform, number, opened.file, block)
            _in_time(name, number, opened, asked, answer)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        path = None if opened is None else opened.file.uri
        if name == "release":  # nobody hears of it but the log: TensorFlow takes no status here
            _log.warning("tensorflow.file_lost", path=path, error=str(error))
        set_failure(answer, error, name, path)


def _close(number: int, file: WritableFile, _data: Any, _answer: Any) -> None:
    open_files.remove(number)
    file.close()


def _give_up(number: int, file: WritableFile, _data: Any, _answer: Any) -> None:
    """End a file that lacks bytes: a write of it failed, or was interrupted."""
    open_files.remove(number)
    if not is_stored_by_close(file):
        file.close()
        return
    discard(file)
    raise DataLossError(
        f"close {file.uri!r}: an earlier write of it failed, so that nothing of it was stored;"
        " write it again",
        path=file.uri,
        operation="close",
    )


def _release(number: int, file: RandomAccessFile | WritableFile, data: Any, _answer: Any) -> None:
    """Close a file that TensorFlow drops."""
    open_files.remove(number)
    if isinstance(file, RandomAccessFile):
        file.close()
        return
    with recent_looks.change():
        try:
            if data:
                file.append(data)
        except BaseException:
            if is_stored_by_close(file):
                give_up(file)
            else:
                file.close()
            raise
        file.close()


def _tell(_number: int, file: WritableFile, _data: Any, answer: Any) -> None:
    answer.numbers[0] = file.tell()


_FILE_OPERATIONS: dict[str, Callable[[int, Any, Any, Any], None]] = {
    "append": recent_looks.change()(lambda _number, file, data, _answer: file.append(data)),
    "tell": _tell,
    "flush": recent_looks.change()(lambda _number, file, _data, _answer: file.flush()),
    "sync": recent_looks.change()(lambda _number, file, _data, _answer: file.sync()),
    "wait": lambda _number, _file, _data, _answer: time.sleep(_WAIT_S),
    "close": recent_looks.change()(_close),
    "give_up": recent_looks.change()(_give_up),
    "release": _release,
}
