"""What happened to a file in a watched place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Change", "ChangeKind"]


class ChangeKind(Enum):
    """What happened."""

    APPEARED = "appeared"
    REPLACED = "replaced"
    REMOVED = "removed"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file, which is whole if it is there.

    Attributes:
        path: Absolute, links kept, as a search of the place spells it.
        kind: What happened since the last change of this path.
    """

    path: str
    kind: ChangeKind
