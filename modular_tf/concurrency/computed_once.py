"""An attribute that is computed at its first use, without a lock.

`functools.cached_property` has one lock for all instances before Python 3.12, which a child that
another thread forks would find taken for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

_Value = TypeVar("_Value")


class computed_once(Generic[_Value]):  # noqa: N801  (used as a decorator)
    """Decorates a method without arguments; two threads at once may both call it."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | _Value:
        """Return the value, which the instance keeps from now on instead of this."""
        if instance is None:
            return self
        value: _Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value
