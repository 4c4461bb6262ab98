"""The base of streams, events, timers and memory: a native part that is destroyed once."""

from __future__ import annotations

import operator
from itertools import starmap
from typing import TYPE_CHECKING, Any

from modular_tf.errors import ClosedError, InvalidArgumentError, unexpected
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.executor import Executor


class NativeObject:
    """An object of a device. [any thread]

    It is destroyed when it is closed, or dropped, and nothing uses it any more: calls of other
    threads and copies in flight keep the native part. The end of its device destroys it at once.

    Attributes:
        native: The native part, None when closed; for the objects of a device among themselves.
    """

    __slots__ = ("__weakref__", "_executor", "native")

    def __init__(self, executor: Executor, native: Any) -> None:
        self.native: Any = native
        self._executor = executor  # last: its close finds the memory that refers to it

    @property
    def closed(self) -> bool:
        """Whether it, or its device, was closed."""
        return self.native is None or self._executor.closed

    def close(self) -> None:
        """Destroy it as soon as nothing uses it any more. A second call does nothing."""
        self.native = None

    def _check(self, error: Any, operation: str) -> None:
        """Raise the error of a native call, if there is one."""
        if error:
            raise self._executor.failure(error, operation)

    def __enter__(self) -> Self:
        usable(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{type(self).__name__} of {self._executor.name}, {state}>"


def usable(found: object, kind: type[NativeObject] = NativeObject) -> Any:
    """Return the native part of an argument.

    Raises ClosedError if it was closed, TypeError if it is nothing of this kind.
    """
    if not isinstance(found, kind):
        raise TypeError(f"expected a {kind.__name__}, found {found!r}")
    native = found.native
    if native is None:
        raise ClosedError(
            f"the {type(found).__name__} was closed",
            plugin=found._executor.plugin,  # noqa: SLF001  (of this module's class)
        )
    return native


def owned(
    new: Callable[..., Any],
    free: Callable[[Any], None],
    arguments: tuple[Any, ...],
    executor: Executor,
    operation: str,
) -> Any:
    """Return the object that a native function creates; it is freed with its last reference.

    Raises the error that the native core kept, if the object is NULL.
    """
    native = call_and_own(new, arguments, free)
    if not native:
        raise executor.failure(lib.mtf_take_error(), operation)
    return native


def call_and_own(
    new: Callable[..., Any], arguments: tuple[Any, ...], free: Callable[[Any], None]
) -> Any:
    """Return what a native function creates, owned by Python from the start; it may be NULL.

    Signal handlers run between two steps of the interpreter, and this is one: none of them can
    raise when the object exists and is not yet owned.
    """
    return next(map(ffi.gc, starmap(new, (arguments,)), (free,)))


def whole_number(found: Any, what: str) -> int:
    """Return a size, an offset or an ordinal as a number; floats are not cut off.

    Raises InvalidArgumentError if it is no whole number.
    """
    try:
        return operator.index(found)
    except TypeError:
        raise unexpected(found, what, "a whole number") from None


def check_natural(*numbers: int) -> None:
    """Raise InvalidArgumentError if a size or an offset is negative, or no whole number.

    It would become unsigned in the native core.
    """
    for number in numbers:
        if whole_number(number, "a size or an offset") < 0:
            raise InvalidArgumentError(f"{number}: sizes and offsets are not negative")
