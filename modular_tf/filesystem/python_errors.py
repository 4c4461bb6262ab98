"""The error class of this package for an exception of a filesystem that is written in Python."""

from __future__ import annotations

import errno

from modular_tf import errors
from modular_tf.errors import ModularTFError

_BY_ERRNO: dict[int, type[ModularTFError]] = {
    errno.EBUSY: errors.FailedPreconditionError,
    errno.ECONNREFUSED: errors.UnavailableError,
    errno.ECONNRESET: errors.UnavailableError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EHOSTUNREACH: errors.UnavailableError,
    errno.EINVAL: errors.InvalidArgumentError,
    errno.EIO: errors.DataLossError,
    errno.ELOOP: errors.InvalidArgumentError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
    errno.ENETUNREACH: errors.UnavailableError,
    errno.ENFILE: errors.ResourceExhaustedError,
    errno.ENOMEM: errors.ResourceExhaustedError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.ENOSYS: errors.UnimplementedError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.ENOTSUP: errors.UnimplementedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.EXDEV: errors.UnimplementedError,
}

# From the special to the general: the first match counts.
_BY_CLASS: tuple[tuple[type[Exception], type[ModularTFError]], ...] = (
    (FileNotFoundError, errors.NotFoundError),
    (FileExistsError, errors.AlreadyExistsError),
    (IsADirectoryError, errors.FailedPreconditionError),
    (NotADirectoryError, errors.FailedPreconditionError),
    (PermissionError, errors.PermissionDeniedError),
    (TimeoutError, errors.DeadlineExceededError),
    (ConnectionError, errors.UnavailableError),
    (NotImplementedError, errors.UnimplementedError),
    (EOFError, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (ValueError, errors.InvalidArgumentError),
    (TypeError, errors.InvalidArgumentError),
)

_BY_STATUS: dict[int, type[ModularTFError]] = {
    401: errors.PermissionDeniedError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    408: errors.DeadlineExceededError,
    410: errors.NotFoundError,
    429: errors.ResourceExhaustedError,
    **dict.fromkeys(range(500, 600), errors.UnavailableError),
    504: errors.DeadlineExceededError,
}
"""The error class for the status of an HTTP response."""

_UNREACHABLE = tuple(set(_BY_STATUS.values()) - {errors.NotFoundError})


def error_class_for(exception: Exception) -> type[ModularTFError]:
    """Return the error class for an exception, `UnknownError` if none matches."""
    if isinstance(exception, ModularTFError):
        return type(exception)
    for theirs, ours in _BY_CLASS:
        if isinstance(exception, theirs):
            return ours
    if isinstance(exception, OSError):
        return _BY_ERRNO.get(exception.errno or 0, errors.UnknownError)
    status = getattr(exception, "status", None)  # of an HTTP response, as in aiohttp's errors
    return _BY_STATUS.get(status if isinstance(status, int) else 0, errors.UnknownError)


def _true_reason(exception: Exception) -> Exception:
    """Return the cause of a `FileNotFoundError` if the server could not be asked.

    fsspec's filesystem over HTTP raises `FileNotFoundError` for every failure.
    """
    cause = exception.__cause__
    if isinstance(exception, FileNotFoundError) and isinstance(cause, Exception):
        return cause if issubclass(error_class_for(cause), _UNREACHABLE) else exception
    return exception


def error_for(
    exception: Exception, *, plugin: str | None = None, path: str | None, operation: str
) -> ModularTFError:
    """Return the error for an exception; a `ModularTFError` is returned unchanged."""
    if isinstance(exception, ModularTFError):
        return exception
    exception = _true_reason(exception)
    said = getattr(exception, "strerror", None) or str(exception) or type(exception).__name__
    return error_class_for(exception)(
        f"{operation} {path!r}: {said}", plugin=plugin, path=path, operation=operation
    )
