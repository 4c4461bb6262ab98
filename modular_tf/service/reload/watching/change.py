"""A change of a file in a watched place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.discovery.file_identity import FileIdentity

__all__ = ["Change", "ChangeKind"]


class ChangeKind(Enum):
    """What happened to a file."""

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
        identity: Of the file that was found whole; None for a removed one.
    """

    path: str
    kind: ChangeKind
    identity: FileIdentity | None = None
