"""Which of our errors an exception of foreign Python code amounts to."""

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

# From the special to the general: the first that fits counts.
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
"""What the status of an HTTP answer amounts to."""

_NO_ANSWER = tuple(set(_BY_STATUS.values()) - {errors.NotFoundError})


def error_class_for(exception: Exception) -> type[ModularTFError]:
    """Return the error class that fits; `UnknownError` where nothing is known of it."""
    if isinstance(exception, ModularTFError):
        return type(exception)
    for theirs, ours in _BY_CLASS:
        if isinstance(exception, theirs):
            return ours
    if isinstance(exception, OSError):
        return _BY_ERRNO.get(exception.errno or 0, errors.UnknownError)
    status = getattr(exception, "status", None)  # of an HTTP answer, as aiohttp's errors have it
    return _BY_STATUS.get(status if isinstance(status, int) else 0, errors.UnknownError)


def _true_reason(exception: Exception) -> Exception:
    """Return why a file is called missing, where nobody could look.

    fsspec's filesystem over HTTP raises `FileNotFoundError` whatever went wrong.
    """
    cause = exception.__cause__
    if isinstance(exception, FileNotFoundError) and isinstance(cause, Exception):
        return cause if issubclass(error_class_for(cause), _NO_ANSWER) else exception
    return exception


def error_for(
    exception: Exception, *, plugin: str | None = None, path: str | None, operation: str
) -> ModularTFError:
    """Return our error for an exception; one of ours is returned as it is."""
    if isinstance(exception, ModularTFError):
        return exception
    exception = _true_reason(exception)
    said = getattr(exception, "strerror", None) or str(exception) or type(exception).__name__
    return error_class_for(exception)(
        f"{operation} {path!r}: {said}", plugin=plugin, path=path, operation=operation
    )
