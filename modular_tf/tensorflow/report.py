"""What came of the registration of each scheme in TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """What can come of a registration."""

    SERVED = "served"
    REBOUND = "rebound"
    TAKEN = "taken"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SchemeRow:
    """A scheme, and what came of its registration.

    Attributes:
        scheme: Its name in TensorFlow.
        serves: The scheme of the service that is behind it.
        plugin: Who serves that.
        outcome: `served` from now on; `rebound`: it was ours before and is served by this service
            now; `taken` by TensorFlow or another library; `refused` by TensorFlow.
        message: Why not; empty where it is served.
        remedy: What to do about it; empty where it is served.
    """

    scheme: str
    serves: str
    plugin: str
    outcome: Outcome
    message: str = ""
    remedy: str = ""

    @property
    def is_served(self) -> bool:
        """Whether TensorFlow's calls come here."""
        return self.outcome in {Outcome.SERVED, Outcome.REBOUND}


@dataclass(frozen=True, slots=True)
class Registration:
    """One row per scheme, in the order in which they were asked for.

    Attributes:
        rows: The rows.
        tensorflow: The version of TensorFlow.
    """

    rows: tuple[SchemeRow, ...]
    tensorflow: str

    @property
    def schemes(self) -> tuple[str, ...]:
        """The names in TensorFlow that are served."""
        return tuple(row.scheme for row in self.rows if row.is_served)

    def __str__(self) -> str:
        lines = [
            f"{row.scheme}: {row.outcome.value}, {row.serves} of {row.plugin}"
            if row.is_served
            else f"{row.scheme}: {row.outcome.value}: {row.message}; {row.remedy}"
            for row in self.rows
        ]
        return "\n".join([f"TensorFlow {self.tensorflow}", *lines])
