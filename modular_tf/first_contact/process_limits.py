"""The limits of the process: those that a trial sets, and those that a plugin changed."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from modular_tf.rules import Violation
from modular_tf.rules.first_contact import PROCESS_STATE_KEPT, RIGHTS_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

ProcessLimits = dict[str, tuple[float, float]]
"""The soft and the hard limit, by the names that setrlimit(2) has for them."""

_NAMES = tuple(sorted(name for name in dir(resource) if name.startswith("RLIMIT_")))
# Other libraries fail where these are lowered.
_NEEDED = frozenset(
    f"RLIMIT_{name}" for name in ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
)


def process_limits() -> ProcessLimits:
    """Return the limits of this process; infinity for none."""
    return {name: _limits(getattr(resource, name)) for name in _NAMES}


def _limits(kind: int) -> tuple[float, float]:
    soft, hard = (
        float("inf") if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(kind)
    )
    return soft, hard


def limit_changes(
    own: ProcessLimits, taken: ProcessLimits, after: ProcessLimits
) -> Iterator[Violation]:
    """Yield a violation for each limit that a plugin changed.

    Args:
        own: The limits of the application.
        taken: The limits of the trial, before the plugin ran.
        after: The limits after it ran.
    """
    for name in _NAMES:
        soft, hard = after[name]
        own_soft, _ = own[name]
        if after[name] == taken[name]:
            continue
        if hard < taken[name][1]:
            yield Violation(
                PROCESS_STATE_KEPT, f"lowered how far {name} may be raised, to {_shown(hard)}"
            )
        if soft == own_soft:
            continue
        how = "lowered" if soft < own_soft else "raised"
        harms = name in _NEEDED and how == "lowered"
        yield Violation(
            RIGHTS_KEPT if harms else PROCESS_STATE_KEPT,
            f"{how} {name} from {_shown(own_soft)} to {_shown(soft)}",
        )


def _shown(limit: float) -> str:
    return "unlimited" if limit == float("inf") else str(int(limit))
