"""The error class of this package for an exception of a filesystem that is written in Python."""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf import errors
from modular_tf.errors import ModularTFError
from modular_tf.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

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

_BY_OBSTORE_CLASS: dict[str, type[ModularTFError]] = {
    "AlreadyExistsError": errors.AlreadyExistsError,
    "InvalidPathError": errors.DataLossError,  # only of a listing: no path leads to a key in it
    "NotSupportedError": errors.UnimplementedError,
    "PermissionDeniedError": errors.PermissionDeniedError,
    "PreconditionError": errors.FailedPreconditionError,
    "UnauthenticatedError": errors.PermissionDeniedError,
    "UnknownConfigurationKeyError": errors.InvalidArgumentError,
}
_OF_OBSTORE = "obstore.exceptions"

# Clients written in C++ and Rust give the answer of a server, or what their library found, as text.
_BY_TEXT: dict[type[ModularTFError], tuple[str, ...]] = {
    errors.PermissionDeniedError: (
        "AWS Error (ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|INVALID_SIGNATURE)",
        "AWS Error (SIGNATURE_DOES_NOT_MATCH|MISSING_AUTHENTICATION_TOKEN|UNRECOGNIZED_CLIENT)",
        r"Status\((PERMISSION_DENIED|UNAUTHENTICATED)",
    ),
    errors.NotFoundError: (
        "AWS Error (NO_SUCH_BUCKET|NO_SUCH_KEY|RESOURCE_NOT_FOUND)",
        r"Status\(NOT_FOUND",
        "Bucket '[^']*' not found",
        "parent directory does not exist",
    ),
    errors.ResourceExhaustedError: ("AWS Error (SLOW_DOWN|THROTTLING)",),
    errors.DeadlineExceededError: ("AWS Error REQUEST_TIMEOUT", r"Status\(DEADLINE_EXCEEDED"),
    errors.UnavailableError: (
        "AWS Error (NETWORK_CONNECTION|SERVICE_UNAVAILABLE|INTERNAL_FAILURE)",
        r"Status\(UNAVAILABLE",
        "HTTP error: (error sending request|request or response body error)",
        r"Azure Error: \[\] (Connection|Error while)",  # "closed before getting full response"
        "[Ff]ail(ed)? to (connect|get a new connection)",
    ),
}
_STATUS_IN_TEXT = re.compile(r"(?:[Ss]tatus(?: code)?:?|HTTP status|Azure Error: \S*) \(?(\d{3})\b")

_XML_ANSWER = re.compile(r"<\?xml.*?<Code>([^<]*)</Code>.*?<Message>([^<]*)</Message>.*", re.DOTALL)

_UNREACHABLE = tuple(set(_BY_STATUS.values()) - {errors.NotFoundError})


def error_class_for(exception: Exception) -> type[ModularTFError]:
    """Return the error class for an exception, `UnknownError` if none matches."""
    if isinstance(exception, ModularTFError):
        return type(exception)
    for theirs, ours in _BY_CLASS:
        if isinstance(exception, theirs):
            return ours
    if isinstance(exception, OSError) and exception.errno:
        return _BY_ERRNO.get(exception.errno, errors.UnknownError)
    status = getattr(exception, "status", None)  # of an HTTP response, as in aiohttp's errors
    if isinstance(status, int):
        return _BY_STATUS.get(status, errors.UnknownError)
    # Neither obstore nor pyarrow need be imported.
    of_obstore = {cls.__name__ for cls in type(exception).__mro__ if cls.__module__ == _OF_OBSTORE}
    for name in of_obstore & _BY_OBSTORE_CLASS.keys():
        return _BY_OBSTORE_CLASS[name]
    if not (of_obstore or isinstance(exception, OSError)):
        return errors.UnknownError
    text = _text_of(exception)
    if found := _STATUS_IN_TEXT.search(text):
        return _BY_STATUS.get(int(found[1]), errors.UnknownError)
    matching = (ours for ours, texts in _BY_TEXT.items() if re.search("|".join(texts), text))
    return next(matching, errors.UnknownError)


def _text_of(exception: Exception) -> str:
    """Return an exception's text, without the structures that obstore shows after it.

    Of a server's answer in XML its code and its message are left.
    """
    return _XML_ANSWER.sub(r"\1: \2", str(exception).partition("\n\nDebug source:")[0])


def error_for(
    exception: Exception, *, plugin: str | None = None, path: str | None, operation: str
) -> ModularTFError:
    """Return the error for an exception; a `ModularTFError` is returned unchanged."""
    if isinstance(exception, ModularTFError):
        return exception
    cause = exception.__cause__
    # fsspec's filesystem over HTTP raises `FileNotFoundError` for every failure.
    if isinstance(exception, FileNotFoundError) and isinstance(cause, Exception):
        exception = cause if issubclass(error_class_for(cause), _UNREACHABLE) else exception
    text = getattr(exception, "strerror", None) or _text_of(exception) or type(exception).__name__
    return error_class_for(exception)(
        f"{operation} {path!r}: {text}", plugin=plugin, path=path, operation=operation
    )


@contextmanager
def translated_errors(
    operation: str, path: str | None, plugin: str | None = None
) -> Iterator[None]:
    """Raise our errors instead of the exceptions of a client in the body of `with`."""
    try:
        yield
    except Warning:  # an error by the user's filter of warnings
        raise
    except Exception as error:
        ours = error_for(error, plugin=plugin, path=path, operation=operation)
        if ours is error:
            raise
        raise ours from without_secrets(error)
