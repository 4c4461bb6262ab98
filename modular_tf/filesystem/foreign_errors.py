"""Which of our errors an exception of foreign Python code amounts to."""

from __future__ import annotations

import errno

from modular_tf import errors
from modular_tf.errors import ModularTFError

_BY_ERRNO: dict[int, type[ModularTFError]] = {
    errno.EBUSY: errors.FailedPreconditionError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EINVAL: errors.InvalidArgumentError,
    errno.EIO: errors.DataLossError,
    errno.ELOOP: errors.InvalidArgumentError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
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


def error_class_for(exception: Exception) -> type[ModularTFError]:
    """Return the error class that fits; `UnknownError` where nothing is known of it."""
    if isinstance(exception, ModularTFError):
        return type(exception)
    for theirs, ours in _BY_CLASS:
        if isinstance(exception, theirs):
            return ours
    number = exception.errno if isinstance(exception, OSError) else None
    return _BY_ERRNO.get(number or 0, errors.UnknownError)


def error_for(
    exception: Exception, *, plugin: str | None = None, path: str | None, operation: str
) -> ModularTFError:
    """Return our error for an exception; one of ours is returned as it is."""
    if isinstance(exception, ModularTFError):
        return exception
    said = getattr(exception, "strerror", None) or str(exception) or type(exception).__name__
    return error_class_for(exception)(
        f"{operation} {path!r}: {said}", plugin=plugin, path=path, operation=operation
    )
