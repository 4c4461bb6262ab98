"""What a process of checks is to work on, and what it makes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL_SCHEMES: Mapping[str, str] = {"": "", "file": "file://"}
"""The schemes whose names are paths of this machine, and how a URI of each begins."""


@dataclass(frozen=True, slots=True)
class Target:
    """One subject of one plugin, and how it is reached.

    Attributes:
        path: The library's file, absolute.
        kind: `filesystem`, `device`, `kernel`, or `library` for what concerns all of them.
        reached: In which way.
        scheme: The scheme of a filesystem, None for the library and for devices.
        ordinal: The number of a device, None for the library and for filesystems.
        root: A URI below which everything may be created and deleted; None for the kit's choice.
        scratch: An empty local directory of this process alone, removed afterwards.
        companions: Libraries that the plugin brings along (`LoadFacts.companions`).
        absent: Functions that it asks for and no library has (`LoadFacts.absent`).
        seed: Of all that is random.
        options: What the profile or the user says beyond that, by name.
        repeated_by: The options of `modular-tf check` that try the same again.
        lost_calls: The calls in which checks before these lost their process, without arguments,
            and the id of the check.
    """

    path: str
    kind: str
    reached: Pass
    scheme: str | None = None
    ordinal: int | None = None
    root: str | None = None
    scratch: str = ""
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    repeated_by: tuple[str, ...] = ()
    lost_calls: dict[str, str] = field(default_factory=dict)

    @property
    def assumed_store(self) -> str | None:
        """The scheme of a store that nobody has named; None where there is a root, or a disk."""
        is_known = self.root is not None or self.scheme in LOCAL_SCHEMES
        return None if is_known else self.scheme

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {**asdict(self), "reached": self.reached.value}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Target:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        lists = {name: tuple(value[name]) for name in ("companions", "absent", "repeated_by")}
        return cls(**{**value, **lists, "reached": Pass(value["reached"])})
