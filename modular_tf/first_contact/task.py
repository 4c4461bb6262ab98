"""What is to be tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from modular_tf.discovery.file_identity import SeenFile


@dataclass(frozen=True, slots=True)
class Task:
    """One plugin to try.

    Attributes:
        plugin: Its name for users.
        file: Its library.
        companions: Files of libraries that it brings along (`LoadFacts.companions`).
        absent: Functions that nobody has (`LoadFacts.absent`).
        kinds: What to try of it: `filesystem`, `device`, as `discovery.kinds.Kind` names them.
        checked: The files as they were when they were checked (`TrustVerdict.checked`): no others
            are mapped. None where nobody checked them.
    """

    plugin: str
    file: str
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("device",)
    checked: tuple[SeenFile, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Task:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        lists = {key: tuple(value[key]) for key in ("companions", "absent", "kinds")}
        checked = value["checked"]
        return cls(
            plugin=value["plugin"],
            file=value["file"],
            **lists,
            checked=None if checked is None else tuple(map(SeenFile.from_row, checked)),
        )
