"""A set of objects that does not keep them alive."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import WeakValueDictionary

_Object = TypeVar("_Object", bound=object)


class LiveObjects(Generic[_Object]):
    """A set of weakly referenced objects. [any thread]

    Unlike that of `WeakSet`, whose iteration fails when another thread, or a signal handler, adds
    an object in the middle of it.
    """

    def __init__(self) -> None:
        self._by_id: WeakValueDictionary[int, _Object] = WeakValueDictionary()

    def add(self, item: _Object) -> None:
        """Add an object, unless it is in the set already."""
        self._by_id[id(item)] = item

    def all(self) -> list[_Object]:
        """Return the objects that are alive now."""
        found = (reference() for reference in self._by_id.valuerefs())  # copied in one step
        return [item for item in found if item is not None]
