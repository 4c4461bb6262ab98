"""Computes changes of whole files from successive snapshots.

Events are hints only: each decision compares the present snapshot with what was reported last, so
no change is lost or reported twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from modular_tf.service.reload.watching.change import Change, ChangeKind
from modular_tf.service.reload.watching.completeness import why_unfinished

if TYPE_CHECKING:
    from collections.abc import Collection

    from modular_tf.discovery.file_identity import FileIdentity
    from modular_tf.service.reload.watching.snapshot import Snapshot

__all__ = ["Delays", "Reconciler"]

_SECOND_NS = 1_000_000_000
# Where times are kept to one or two seconds (FAT, ext3), later changes may bear the same time.
_COARSE_CLOCK_S = 2.1


@dataclass(frozen=True, slots=True)
class Delays:
    """How long to wait before a change is reported.

    Attributes:
        settled_s: A file that did not change for so long may be whole.
        closed_s: The same for a file that its writer is known to have closed.
        unfinished_s: A file that is not whole, or open for writing, is reported all the same when
            it did not change for so long: it is probably not being written any more.
    """

    settled_s: float = 0.25
    closed_s: float = 0.1
    unfinished_s: float = 10.0


@dataclass(slots=True)
class _Unreported:
    """A path whose identity differs from the reported one; None for a file that is gone."""

    identity: FileIdentity | None
    since: float
    is_closed: bool = False
    unfinished: str | None = None  # why it does not seem whole


class Reconciler:
    """Finds the changes between what was reported and what is there. One thread at a time.

    Times are those of a steady clock, in seconds.

    Args:
        reported: What the receiver of the changes knows at the start.
        delays: How long to wait.
    """

    def __init__(self, reported: Snapshot, delays: Delays) -> None:
        self._reported: Final = dict(reported)
        self._patience: Final = delays
        self._unreported: Final[dict[str, _Unreported]] = {}
        self._before: Final[dict[str, FileIdentity | None]] = {}  # of what was told last
        self._next_look: float | None = None

    @property
    def next_look(self) -> float | None:
        """When `step` should be called again though nothing happened; None for no need."""
        return self._next_look

    @property
    def unfinished(self) -> dict[str, str]:
        """The files that have settled but are not whole, each with the reason."""
        waiting = self._unreported.items()
        return {path: change.unfinished for path, change in waiting if change.unfinished}

    def step(
        self,
        seen: Snapshot,
        now: float,
        closed: Collection[str] = (),
        *,
        clock_ns: int | None = None,
    ) -> list[Change]:
        """Return the changes that are due, removals first, and count them as reported.

        Args:
            seen: What is there.
            now: When that was looked at.
            closed: Files that a writer has closed since the last step.
            clock_ns: The system's time at that moment, where the times of files are of that clock;
                then a file counts as unchanged for as long as they say.
        """
        self._before.clear()
        self._note(seen, now, closed, clock_ns)
        looks: list[float] = []
        due: list[tuple[str, _Unreported]] = []
        for path, change in self._unreported.items():
            wait = self._wait_for(path, change, now)
            if wait is None:
                due.append((path, change))
            else:
                looks.append(now + wait)
        self._next_look = min(looks, default=None)
        changes = [self._report(path, change) for path, change in due]
        return sorted(changes, key=lambda change: change.kind is not ChangeKind.REMOVED)

    def take_back(self) -> None:
        """Report the changes of the last step again in the next one: they were not handled."""
        for path, identity in self._before.items():
            if identity is None:
                self._reported.pop(path, None)
            else:
                self._reported[path] = identity

    def _note(
        self, seen: Snapshot, now: float, closed: Collection[str], clock_ns: int | None
    ) -> None:
        """Record what differs from what was reported, and since when."""
        for path in {**self._reported, **seen, **self._unreported}:
            identity = seen.get(path)
            if identity == self._reported.get(path):
                self._unreported.pop(path, None)
                continue
            waiting = self._unreported.get(path)
            if waiting is None or waiting.identity != identity:
                age = min(_age_s(identity, clock_ns), self._patience.settled_s)
                waiting = self._unreported[path] = _Unreported(identity, now - age)
            waiting.is_closed = waiting.is_closed or path in closed

    def _wait_for(self, path: str, change: _Unreported, now: float) -> float | None:
        """Return how long to wait until the next look at a change; None if it is due."""
        delays, age = self._patience, now - change.since
        needed = delays.closed_s if change.is_closed else delays.settled_s
        if change.identity is not None and change.identity.ctime_ns % _SECOND_NS == 0:
            needed = max(needed, _COARSE_CLOCK_S)
        if age < needed:
            return needed - age
        if change.identity is None or age >= delays.unfinished_s:
            return None
        change.unfinished = why_unfinished(path)
        return None if change.unfinished is None else delays.settled_s

    def _report(self, path: str, change: _Unreported) -> Change:
        del self._unreported[path]
        known = self._before[path] = self._reported.pop(path, None)
        if change.identity is None:
            return Change(path, ChangeKind.REMOVED)
        self._reported[path] = change.identity
        kind = ChangeKind.APPEARED if known is None else ChangeKind.REPLACED
        return Change(path, kind, change.identity)


def _age_s(identity: FileIdentity | None, clock_ns: int | None) -> float:
    """Return the seconds since a file last changed, 0 if that is unknown."""
    if identity is None or clock_ns is None:
        return 0.0
    return max(0.0, (clock_ns - identity.ctime_ns) / _SECOND_NS)
