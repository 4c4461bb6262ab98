"""From a failed call to an exception: the only place where native errors are freed."""

from __future__ import annotations

from typing import Any

from modular_tf.errors import ClosedError, ModularTFError, error_from_code
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import decode


def take_error(
    error: Any, *, plugin: str | None = None, path: str | None = None, operation: str | None = None
) -> ModularTFError:
    """Turn a native error into an exception, not raised, and free it.

    Args:
        error: A non-NULL `mtf_error *`; the caller must not use it again.
        plugin: Who was called.
        path: The path as the user wrote it.
        operation: The slot that was called.
    """
    code, message = error.code, decode(ffi.string(error.message))
    thrown, closed, broken = error.thrown, error.closed, error.rule
    lib.mtf_error_free(error)
    if thrown:
        message = f"a C++ exception left the plugin: {message}"
    where = " ".join(part for part in (operation, repr(path) if path is not None else None) if part)
    text = f"{where}: {message}" if where else message
    if plugin:
        text = f"{text} (plugin {plugin})"
    if closed:
        return ClosedError(text, plugin=plugin, path=path, operation=operation)
    rule = f"SE-{broken:03}" if broken else None
    return error_from_code(code, text, plugin=plugin, path=path, operation=operation, rule=rule)


def check(
    error: Any, *, plugin: str | None = None, path: str | None = None, operation: str | None = None
) -> None:
    """Raise what a native call reported; do nothing for NULL.

    Raises:
        ModularTFError: The class that fits the status code.
    """
    if error:
        raise take_error(error, plugin=plugin, path=path, operation=operation)
