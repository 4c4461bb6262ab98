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
    """One subject of one plugin, and how it is reached."""

    path: str  # the library's file, absolute
    kind: str  # `filesystem`, `device`, `kernel`, or `library` for what concerns all of them
    reached: Pass  # in which way
    scheme: str | None = None  # the scheme of a filesystem, None for the library and for devices
    ordinal: int | None = None  # the number of a device, None for the library and for filesystems
    # A URI below which everything may be created and deleted; None for the kit's choice.
    root: str | None = None
    scratch: str = ""  # an empty local directory of this process alone, removed afterwards
    # Libraries that the plugin brings along (`LoadFacts.companions`).
    companions: tuple[str, ...] = ()
    # Functions that it asks for and no library has (`LoadFacts.absent`).
    absent: tuple[str, ...] = ()
    seed: int = 0  # of all that is random
    # What the profile or the user decides beyond that.
    options: Options = field(default_factory=Options)
    repeated_by: tuple[str, ...] = ()  # the options of `modular-tf check` that try the same again
    # The calls in which checks before these lost their process, without arguments, and the id of
    # the check.
    lost_calls: dict[str, str] = field(default_factory=dict)

    @property
    def assumed_store(self) -> str | None:
        """The scheme of a store that nobody has named; None where there is a root, or a disk."""
        is_known = self.root is not None or self.scheme in LOCAL_SCHEMES
        return None if is_known else self.scheme
