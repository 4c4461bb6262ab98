"""When to stop the checks of a store that nobody has named, and that is probably not there.

Without a root, checks of a remote scheme ask a host of the kit's choice. Where no server listens,
most of them hang, and each takes as long as a check may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome

_MOST_HANGS = 2


class AssumedStores:
    """Counts what hangs on each of these stores. Used by one thread.

    Attributes:
        absent: A sentence on each store whose checks were stopped.
    """

    def __init__(self) -> None:
        self.absent: list[str] = []
        self._hung: dict[str, list[str]] = {}
        self._settled: set[str] = set()  # they are there, or their checks were stopped

    def count(self, store: str | None, outcome: Outcome) -> None:
        """Count an outcome.

        A check that passes with a file of its own shows that the store is there: what hangs on it
        is the plugin's.

        Args:
            store: The scheme of the store, None for one that the user has named.
            outcome: The outcome.
        """
        if store is None:
            return
        if outcome.verdict is Verdict.HUNG:
            self._hung.setdefault(store, []).append(outcome.check_id)
        elif (
            outcome.verdict is Verdict.PASSED and "writes" in all_checks()[outcome.check_id].traits
        ):
            self._settled.add(store)

    def to_stop(self) -> list[str]:
        """Return the stores whose checks should be stopped now."""
        return [
            store
            for store, hung in self._hung.items()
            if len(hung) >= _MOST_HANGS and store not in self._settled
        ]

    def stop(self, store: str, number: int) -> str:
        """Note that the checks of a store are stopped.

        Args:
            store: One of `to_stop`.
            number: How many checks are left out.

        Returns:
            Why a check is left out.
        """
        self._settled.add(store)
        hung = " and ".join(dict.fromkeys(self._hung[store]))
        why = f"{hung} hung on {store}://, and nothing could be written there"
        self.absent.append(
            f"{number} checks of {store}:// were not tried: {why}, so its store is probably not "
            "there; name one that is with --root, and its kind with --profile"
        )
        return f"not tried: {why}, so its store is probably not there; name one with --root"
