"""The progress of a run of checks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.outcome import BAD
from modular_tf.check.planning import number_of_checks
from modular_tf.cli.progress_line import ProgressLine

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.planning import PluginPlan


class CheckProgress:
    """Counts outcomes, and shows them on a terminal."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._bad = 0
        self._line = ProgressLine()

    def tell(self, plan: PluginPlan, outcome: Outcome) -> None:
        """Count one more outcome."""
        done = self._done[plan.path] = self._done.get(plan.path, 0) + 1
        self._bad += outcome.verdict in BAD
        self._line.show(
            lambda _: (
                f"{plan.name}: {done} of {number_of_checks(plan)}, {self._bad} bad, "
                f"last {outcome.check_id}"
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.wipe()
