"""Every error that the package raises.

```
ModularTFError                         code, plugin, path, operation, rule
├── CancelledError
├── UnknownError
├── InvalidArgumentError               ValueError
├── DeadlineExceededError              TimeoutError
├── NotFoundError                      FileNotFoundError
├── AlreadyExistsError                 FileExistsError
├── PermissionDeniedError              PermissionError
├── ResourceExhaustedError             OSError
│   └── OutOfMemoryError               MemoryError
├── FailedPreconditionError            OSError
├── AbortedError
├── OutOfRangeError                    EOFError
├── UnimplementedError                 NotImplementedError
├── InternalError
├── UnavailableError                   ConnectionError
├── DataLossError                      OSError
├── UnauthenticatedError               PermissionError
├── ClosedError                        ValueError (as Python's own closed files)
├── PluginError                        a library was refused, or failed to load or register
│   └── ElfError                       the bytes of a file are not those of a library
└── ConfigError                        ValueError
```
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "ClosedError",
    "ConfigError",
    "DataLossError",
    "DeadlineExceededError",
    "ElfError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "ModularTFError",
    "NotFoundError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PluginError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "collected",
    "error_class",
    "error_from_code",
    "unexpected",
]


class ModularTFError(Exception):
    """The root of all errors of this package.

    Attributes:
        message: What failed, in one sentence; secrets of URIs are left out of it.
        code: The status code, as plugins and TensorFlow know it.
        plugin: Name or path of the plugin concerned, if one is.
        path: The URI or file path concerned, as the caller wrote it.
        operation: Name of the operation, in the spelling of the C table.
        rule: Id of the rule that was broken (`modular_tf.rules`), if one was.
        undeleted: After a failed `delete_recursively`, how many files and directories are left.
    """

    default_code = Code.UNKNOWN
    default_errno: int | None = None

    def __init__(
        self,
        message: str = "",
        *,
        code: Code | None = None,
        plugin: str | None = None,
        path: str | None = None,
        operation: str | None = None,
        rule: str | None = None,
    ) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.plugin = plugin
        self.path = path
        self.operation = operation
        self.rule = rule
        self.undeleted: tuple[int, int] | None = None
        if isinstance(self, OSError):
            _describe(self, self.default_errno, message, path)

    @classmethod
    def of(cls, operation: str, path: str, text: str, *, plugin: str | None = None) -> Self:
        """Return the error of an operation on a path; its message begins with both."""
        return cls(f"{operation} {path!r}: {text}", plugin=plugin, path=path, operation=operation)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            type(self),
            self.message,
            {
                "code": self.code,
                "plugin": self.plugin,
                "path": self.path,
                "operation": self.operation,
                "rule": self.rule,
            },
            self.undeleted,
        )


def _describe(error: OSError, number: int | None, message: str, path: str | None) -> None:
    """Fill in what Python code reads from its own errors of files."""
    error.errno = number
    error.strerror = message
    error.filename = path


def _rebuild(
    cls: type[ModularTFError],
    message: str,
    attributes: dict[str, Any],
    undeleted: tuple[int, int] | None,
) -> ModularTFError:
    error = cls(message, **attributes)
    error.undeleted = undeleted
    return error


class CancelledError(ModularTFError):
    """The operation was cancelled, usually by its caller."""

    default_code = Code.CANCELLED


class UnknownError(ModularTFError):
    """The plugin failed without saying how."""

    default_code = Code.UNKNOWN


class InvalidArgumentError(ModularTFError, ValueError):
    """An argument can never be right, whatever the state of the system."""

    default_code = Code.INVALID_ARGUMENT


class DeadlineExceededError(ModularTFError, TimeoutError):
    """The operation did not end in time."""

    default_code = Code.DEADLINE_EXCEEDED
    default_errno = errno.ETIMEDOUT


class NotFoundError(ModularTFError, FileNotFoundError):
    """A file, directory, scheme, device or plugin does not exist."""

    default_code = Code.NOT_FOUND
    default_errno = errno.ENOENT


class AlreadyExistsError(ModularTFError, FileExistsError):
    """The object to create exists already."""

    default_code = Code.ALREADY_EXISTS
    default_errno = errno.EEXIST


class PermissionDeniedError(ModularTFError, PermissionError):
    """The caller may not do this."""

    default_code = Code.PERMISSION_DENIED
    default_errno = errno.EACCES


class ResourceExhaustedError(ModularTFError, OSError):
    """A quota, a disk or a memory is full."""

    default_code = Code.RESOURCE_EXHAUSTED
    default_errno = errno.ENOSPC


class OutOfMemoryError(ResourceExhaustedError, MemoryError):
    """A device, or an arena over its memory, has no room for what was asked of it."""

    default_errno = errno.ENOMEM


class FailedPreconditionError(ModularTFError, OSError):
    """The system is not in the state that the operation needs (a directory, not empty, closed)."""

    default_code = Code.FAILED_PRECONDITION
    default_errno = errno.EINVAL


class AbortedError(ModularTFError):
    """A concurrent operation got in the way."""

    default_code = Code.ABORTED


class OutOfRangeError(ModularTFError, EOFError):
    """A position lies past the end."""

    default_code = Code.OUT_OF_RANGE


class UnimplementedError(ModularTFError, NotImplementedError):
    """The plugin does not have this operation and the host has no substitute."""

    default_code = Code.UNIMPLEMENTED


class InternalError(ModularTFError):
    """A plugin broke its own contract."""

    default_code = Code.INTERNAL


class UnavailableError(ModularTFError, ConnectionError):
    """A service cannot be reached now; trying again may help."""

    default_code = Code.UNAVAILABLE
    default_errno = errno.ECONNREFUSED


class DataLossError(ModularTFError, OSError):
    """Data is lost or damaged."""

    default_code = Code.DATA_LOSS
    default_errno = errno.EIO


class UnauthenticatedError(ModularTFError, PermissionError):
    """The caller has not said who they are."""

    default_code = Code.UNAUTHENTICATED
    default_errno = errno.EACCES


class ClosedError(ModularTFError, ValueError):
    """The object was closed before."""

    default_code = Code.FAILED_PRECONDITION


class PluginError(ModularTFError):
    """A library was refused, or failed to load or to register."""

    default_code = Code.FAILED_PRECONDITION


class ElfError(PluginError):
    """The bytes of a file are not those of a library that could be loaded."""


class ConfigError(ModularTFError, ValueError):
    """The configuration cannot be read or does not make sense."""

    default_code = Code.INVALID_ARGUMENT


def unexpected(found: object, what: str, expected: str) -> InvalidArgumentError:
    """Return the error for an argument of the wrong type (not raised here).

    Args:
        found: The argument.
        what: What it is for, as "a timeout".
        expected: What it should be, as "a number of seconds".
    """
    kind = type(found).__name__
    return InvalidArgumentError(f"{what}: expected {expected}, found {found!r:.200} ({kind})")


_CLASSES: dict[Code, type[ModularTFError]] = {
    cls.default_code: cls
    for cls in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
        UnauthenticatedError,
    )
}


def error_class(code: Code) -> type[ModularTFError]:
    """Return the class for `code`; OK has none and gives `InternalError`."""
    return _CLASSES.get(code, InternalError)


def error_from_code(
    code: int,
    message: str,
    *,
    plugin: str | None = None,
    path: str | None = None,
    operation: str | None = None,
    rule: str | None = None,
) -> ModularTFError:
    """Return the error for a status that came out of a C call (not raised here)."""
    known = Code.from_int(code)
    return error_class(known)(
        message, code=known, plugin=plugin, path=path, operation=operation, rule=rule
    )


@contextmanager
def collected(failures: list[ModularTFError]) -> Iterator[None]:
    """Add an error of this package to `failures` instead of raising it.

    For what is closed one after the other: a failure must not keep the rest open. Anything else is
    an interrupt, which goes on to the caller: nothing is given up before it is known to be closed,
    so that closing again finishes it.
    """
    try:
        yield
    except ModularTFError as error:
        failures.append(error)
