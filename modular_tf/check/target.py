"""What a process of checks is to work on, and what it makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass  # noqa: TC001  (for the codec)

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
        options: What the profile or the user decides beyond that.
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
    options: Options = field(default_factory=Options)
    repeated_by: tuple[str, ...] = ()
    lost_calls: dict[str, str] = field(default_factory=dict)

    @property
    def assumed_store(self) -> str | None:
        """The scheme of a store that nobody has named; None where there is a root, or a disk."""
        is_known = self.root is not None or self.scheme in LOCAL_SCHEMES
        return None if is_known else self.scheme
