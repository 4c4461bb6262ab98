"""What TensorFlow's calls do: the functions that `native/core/bridge.h` declares.

TensorFlow calls from any of its threads. No exception may leave a function here: each becomes a
code and a message of the answer.

TensorFlow makes several calls for one path while it loads one thing: whether it exists, its kind,
its length. A store needs two requests for each. The statistics of what exists are cached for a
second, and dropped when a change that TensorFlow makes has ended; that nothing exists is not
cached. TensorFlow walks a tree by the names in a directory and a call for each; where a filesystem
lists statistics with the names, these are cached too.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import (
    AbortedError,
    CancelledError,
    ClosedError,
    DataLossError,
    FailedPreconditionError,
    InternalError,
    ModularTFError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from modular_tf.events import EventLog
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.glob import has_magic
from modular_tf.filesystem.location import checked_listing
from modular_tf.filesystem.plugin_filesystem import PluginRandomAccessFile, PluginWritableFile
from modular_tf.filesystem.python_errors import error_for
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.uri import is_of_this_machine, join_path, scheme_of
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.runtime_library import TENSORFLOW_SONAME, core_path
from modular_tf.native.status import check
from modular_tf.native.strings import decode, encode
from modular_tf.tensorflow.registration import BINDINGS, Binding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.filesystem.files import FileStatistics, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

    _PathOperation = Callable[[Binding, str, str, Any], None]

_log = EventLog("tensorflow")
_INTERRUPT_AFTER_S = 0.2
_WAIT_S = 0.001  # for another thread's use of the same file
_MAX_WAIT_AT_EXIT_S = 5.0

_numbers = count(1)
_files: dict[int, Any] = {}  # that TensorFlow has open, by the numbers that the native side has

# By filesystem and URI: what was there, and the length that TensorFlow is going to read by.
found_here = StatCache["FileStatistics"](1.0, 1 << 15)
_lengths = StatCache[int](1.0, 1 << 15)


# -- registration ---------------------------------------------------------------------------------


def connect(tf: Any) -> None:
    """Find TensorFlow's functions, and accept its calls until the process ends."""
    library = os.path.join(tf.sysconfig.get_lib(), TENSORFLOW_SONAME)
    check(lib.mtf_bridge_connect(os.fsencode(library)), operation="register")
    atexit.unregister(_close_at_exit)
    atexit.register(_close_at_exit)  # last, and so run before services close
    lib.mtf_bridge_open()


def _close_at_exit() -> None:
    left = lib.mtf_bridge_close(_MAX_WAIT_AT_EXIT_S)
    if left:
        _log.warning("tensorflow.calls_left", count=int(left))


def offer(tf: Any, binding: Binding) -> None:
    """Have TensorFlow register a scheme; `tf.errors.OpError` if it refuses."""
    check(lib.mtf_bridge_offer(encode(binding.name)), operation="register")
    # First: after an interrupt, TensorFlow may have the scheme for good.
    BINDINGS[binding.name] = binding
    try:
        tf.experimental.register_filesystem_plugin(core_path())
    except tf.errors.OpError:
        BINDINGS.pop(binding.name, None)
        raise


# -- answers --------------------------------------------------------------------------------------


def _copied(data: Any, size: int) -> Any:
    copy = lib.mtf_bridge_copy(data, size)
    if copy == ffi.NULL:
        raise MemoryError
    return copy


def _set_text(answer: Any, text: bytes) -> None:
    """Set the text of an answer; none where there is no memory for it."""
    old, answer.text = answer.text, lib.mtf_bridge_copy(text, len(text))
    lib.mtf_string_free(old)  # last: an interrupt between the two would have it freed twice


def _set_names(answer: Any, names: Sequence[str]) -> None:
    joined = b"".join(encode(name) + b"\0" for name in names)
    answer.names.bytes = _copied(joined, len(joined))
    answer.names.size = len(joined)
    answer.names.count = len(names)


def _set_failure(answer: Any, error: BaseException, operation: str, path: str | None) -> None:
    """Turn an exception into a code and a message."""
    if isinstance(error, KeyboardInterrupt):
        _interrupt_again()
        failure: ModularTFError = CancelledError(f"{operation}: interrupted")
    elif isinstance(error, ModularTFError):
        failure = error
    elif isinstance(error, OSError | MemoryError | EOFError | NotImplementedError):
        failure = error_for(error, path=path, operation=operation)
    else:
        failure = InternalError.of(operation, str(path), f"{type(error).__name__}: {error}")
        _log.warning("tensorflow.upcall_failed", operation=operation, path=path, error=repr(error))
    answer.code = int(failure.code)
    rule = f" [{failure.rule}]" if failure.rule else ""
    # Always UTF-8: TensorFlow makes a str of it, and fails otherwise.
    _set_text(answer, f"{failure}{rule}".encode("utf-8", "backslashreplace"))


def _interrupt_again() -> None:
    """Raise KeyboardInterrupt in the main thread a moment later: TensorFlow would lose this one.

    Not at once: it would come while TensorFlow makes an exception of the status.
    """
    with suppress(ResourceExhaustedError):
        start_thread(threading.Timer(_INTERRUPT_AFTER_S, _interrupt_main_thread))


def _interrupt_main_thread() -> None:
    """Send SIGINT to the main thread, if Python handles it: the signal ends a wait of the system.

    `_thread.interrupt_main` would be seen when the main thread returns from a sleep or a read only.
    """
    if callable(signal.getsignal(signal.SIGINT)) and (main := threading.main_thread().ident):
        signal.pthread_kill(main, signal.SIGINT)


def _note_interrupt(kind: type[BaseException], _error: object, traceback: Any) -> None:
    """Keep an interrupt that came between the lines of a function that TensorFlow calls.

    What else leaves one, such as an error whose text cannot be made, stays INTERNAL.
    """
    is_interrupt = issubclass(kind, KeyboardInterrupt)
    if is_interrupt:
        _interrupt_again()
    if (answer := traceback.tb_frame.f_locals.get("answer")) is not None:
        answer.code = int(Code.CANCELLED if is_interrupt else Code.INTERNAL)


# -- what was found at a path ---------------------------------------------------------------------


@contextmanager
def change() -> Iterator[None]:
    """Forget what was found when a change has ended, whatever came of it. [any thread]"""
    try:
        yield
    finally:
        found_here.clear()
        _lengths.clear()


def stat(filesystem: Filesystem, uri: str) -> FileStatistics:
    """Return what is there; `NotFoundError` for nothing. [any thread]"""
    key, version = (ref(filesystem), uri), found_here.version
    found = found_here.get(key)
    if found is None:
        found = filesystem.stat(uri)
        if filesystem.is_object_store:
            found_here.put(key, found, version)
    return found


def _is_asked_by_stat(filesystem: Filesystem, uri: str) -> bool:
    """Return whether `stat` takes no more requests than calls that find out less."""
    return filesystem.has_cheap_stat or found_here.get((ref(filesystem), uri)) is not None


def children(filesystem: Filesystem, uri: str) -> list[str]:
    """Return the names in a directory, and keep the statistics of its listing. [any thread]"""
    version, owner = found_here.version, ref(filesystem)
    found = checked_listing(filesystem, uri, on_left_out="warn", with_statistics=True)
    if len(found.statistics) <= found_here.most:
        for name, known in found.statistics.items():
            found_here.put((owner, join_path(uri, name)), known, version)
    return found.names


def exists(filesystem: Filesystem, uri: str) -> bool:
    """Return whether a file or directory is there. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.path_exists(uri)
    try:
        stat(filesystem, uri)
    except NotFoundError:
        return False
    return True


def is_directory(filesystem: Filesystem, uri: str) -> bool:
    """Return whether it is a directory; `NotFoundError` for nothing. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.is_directory(uri)
    return stat(filesystem, uri).is_directory


def file_size(filesystem: Filesystem, uri: str) -> int:
    """Return a file's length, by which TensorFlow is going to read it. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.get_file_size(uri)
    version = _lengths.version
    found = stat(filesystem, uri)
    if found.is_directory:
        return filesystem.get_file_size(uri)
    _lengths.put((ref(filesystem), uri), found.length, version)
    return found.length


def open_file(filesystem: Filesystem, uri: str) -> RandomAccessFile:
    """Open a file; drop what was found of it if the file's length is another. [any thread]

    `AbortedError` if TensorFlow is going to read by that other length: it would take part of the
    file for all of it.
    """
    file = filesystem.new_random_access_file(uri)
    key, length = (ref(filesystem), uri), file.known_length()
    found, given = found_here.get(key), _lengths.get(key)
    if found is not None and found.length != length:
        found_here.forget(key)
        _lengths.forget(key)
        if length is not None and given is not None:
            file.close()
            raise AbortedError.of(
                "new_random_access_file",
                uri,
                f"it was replaced since its length was asked for, {given} bytes then and {length}"
                " now; try again",
                plugin=filesystem.plugin,
            )
    return file


# -- operations on paths --------------------------------------------------------------------------


def _added(answer: Any, file: RandomAccessFile | WritableFile) -> None:
    answer.numbers[0] = number = next(_numbers)
    _files[number] = file


def _open_reader(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    filesystem = binding.filesystem
    file = open_file(filesystem, uri)
    _added(answer, file)
    answer.numbers[1] = not is_of_this_machine(filesystem.scheme)
    if isinstance(file, PluginRandomAccessFile):
        answer.reader = file.native_reader
        _set_text(answer, f"read {uri!r} (plugin {filesystem.plugin})".encode(errors="replace"))


def _open_region(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    with binding.filesystem.new_read_only_memory_region_from_file(uri) as region:
        view = region.view()
        answer.text = _copied(ffi.from_buffer("char[]", view), len(view))
        answer.numbers[0] = len(view)


def _path_exists(binding: Binding, uri: str, _other: str, _answer: Any) -> None:
    if not exists(binding.filesystem, uri):
        raise NotFoundError(f"{uri!r} does not exist", path=uri, operation="path_exists")


def _stat(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    found = stat(binding.filesystem, uri)
    answer.numbers = found.length, found.mtime_nsec, found.is_directory


def _is_directory(binding: Binding, uri: str, _other: str, _answer: Any) -> None:
    if not is_directory(binding.filesystem, uri):
        raise FailedPreconditionError(f"{uri!r} is a file", path=uri, operation="is_directory")


def _get_children(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    names = children(binding.filesystem, uri)
    # Only Python calls this, and fails with a UnicodeDecodeError that names nothing.
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise FailedPreconditionError.of(
                "get_children",
                uri,
                f"the name {os.fsencode(name)!r} in it is not UTF-8; of such names TensorFlow gives"
                " lists by tf.io.matching_files only",
            ) from None
    _set_names(answer, names)


def _get_matching_paths(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    filesystem = binding.filesystem
    if has_magic(uri) or not _is_asked_by_stat(filesystem, uri):
        found = filesystem.get_matching_paths(uri)
    else:  # a pattern without wildcards is a path
        try:
            found = [uri] if exists(filesystem, uri) else []
        except FailedPreconditionError:
            found = []
    _set_names(answer, [binding.theirs(path) for path in found])


_OF_TWO_PATHS = ("rename_file", "copy_file")


def _as_it_is(name: str, give: Callable[[Any, Any], object] | None = None) -> _PathOperation:
    """Return an operation that the filesystem has by this name; `give` sets its answer."""

    def perform(binding: Binding, uri: str, other: str, answer: Any) -> None:
        paths = (uri, binding.ours(other)) if name in _OF_TWO_PATHS else (uri,)
        result = getattr(binding.filesystem, name)(*paths)
        if give is not None:
            give(answer, result)

    return change()(perform)


def _set_counts(answer: Any, counts: tuple[int, int]) -> None:
    answer.numbers[0], answer.numbers[1] = counts


def _get_file_size(binding: Binding, uri: str, _other: str, answer: Any) -> None:
    answer.numbers[0] = file_size(binding.filesystem, uri)


_PATH_OPERATIONS: dict[bytes, _PathOperation] = {
    b"new_random_access_file": _open_reader,
    b"new_read_only_memory_region_from_file": _open_region,
    b"path_exists": _path_exists,
    b"stat": _stat,
    b"is_directory": _is_directory,
    b"get_file_size": _get_file_size,
    b"get_children": _get_children,
    b"get_matching_paths": _get_matching_paths,
    b"new_writable_file": _as_it_is("new_writable_file", _added),
    b"new_appendable_file": _as_it_is("new_appendable_file", _added),
    b"delete_recursively": _as_it_is("delete_recursively", _set_counts),
    **{
        name.encode(): _as_it_is(name)
        for name in (
            *("create_dir", "recursively_create_dir", "delete_file", "delete_dir"),
            *_OF_TWO_PATHS,
        )
    },
}


def _binding_of(uri: str) -> Binding:
    scheme = scheme_of(uri)
    try:
        return BINDINGS[scheme]
    except KeyError:
        raise UnimplementedError(f"no service serves {scheme!r} to TensorFlow", path=uri) from None


@ffi.def_extern(onerror=_note_interrupt)
def mtf_upcall_path(operation: Any, path: Any, other: Any, answer: Any) -> None:
    """Run an operation of a filesystem."""
    name = ffi.string(operation)
    uri = None
    try:
        uri = decode(ffi.string(path))
        second = decode(ffi.string(other)) if other else ""
        binding = _binding_of(uri)
        _PATH_OPERATIONS[name](binding, binding.ours(uri), second, answer)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        _set_failure(answer, error, name.decode(), uri)


# -- operations on files --------------------------------------------------------------------------


def _file(number: int) -> Any:
    try:
        return _files[number]
    except KeyError:
        raise ClosedError("the file is closed") from None


def _checked_count(file: RandomAccessFile, done: int, size: int) -> int:
    if not 0 <= done <= size:
        raise InternalError(f"read {file.uri!r}: {done} bytes, where {size} were requested")
    return done


@ffi.def_extern(onerror=_note_interrupt)
def mtf_upcall_read(number: int, offset: int, buffer: Any, size: int, answer: Any) -> None:
    """Read into memory of TensorFlow's."""
    file = None
    try:
        file = _file(number)
        done = file.readinto(offset, ffi.buffer(buffer, size))
        answer.numbers[0] = _checked_count(file, done, size)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        _set_failure(answer, error, "read", None if file is None else file.uri)


@ffi.def_extern(onerror=_note_interrupt)
def mtf_upcall_file(operation: Any, number: int, data: Any, size: int, answer: Any) -> None:
    """Run an operation of an open file."""
    name = ffi.string(operation).decode()
    file = None
    try:
        file = _file(number)
        block: Any = ffi.buffer(data, size) if data else b""
        if data and not isinstance(file, PluginWritableFile):
            # A filesystem of Python may keep it; TensorFlow changes and frees its own.
            block = bytes(block)
        _FILE_OPERATIONS[name](number, file, block, answer)
        answer.code = 0
    except BaseException as error:  # noqa: BLE001  (it becomes a status)
        path = None if file is None else file.uri
        if name == "release":  # only the log has it: TensorFlow reads no status here
            _log.warning("tensorflow.file_lost", path=path, error=str(error))
        _set_failure(answer, error, name, path)


def _close(number: int, file: WritableFile, _data: Any, _answer: Any) -> None:
    _files.pop(number, None)
    file.close()


def _give_up(number: int, file: WritableFile, _data: Any, _answer: Any) -> None:
    """End a file that lacks bytes: a write of it failed, or was interrupted."""
    _files.pop(number, None)
    if not file.is_stored_by_close:
        file.close()
        return
    file.discard()
    why = "an earlier write of it failed, so that nothing of it was stored; write it again"
    raise DataLossError.of("close", file.uri, why)


def _release(number: int, file: RandomAccessFile | WritableFile, data: Any, _answer: Any) -> None:
    """Close a file that TensorFlow drops."""
    _files.pop(number, None)
    if isinstance(file, RandomAccessFile):
        file.close()
        return
    with change():
        try:
            if data:
                file.append(data)
        except BaseException:
            if file.is_stored_by_close:
                file.give_up()
            else:
                file.close()
            raise
        file.close()


def _tell(_number: int, file: WritableFile, _data: Any, answer: Any) -> None:
    answer.numbers[0] = file.tell()


_FILE_OPERATIONS: dict[str, Callable[[int, Any, Any, Any], None]] = {
    "append": change()(lambda _number, file, data, _answer: file.append(data)),
    "tell": _tell,
    "flush": change()(lambda _number, file, _data, _answer: file.flush()),
    "sync": change()(lambda _number, file, _data, _answer: file.sync()),
    "wait": lambda _number, _file, _data, _answer: time.sleep(_WAIT_S),
    "close": change()(_close),
    "give_up": change()(_give_up),
    "release": _release,
}
