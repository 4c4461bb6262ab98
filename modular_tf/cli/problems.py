"""What went wrong while searching for plugins, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import complain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.rules import Violation


def complain_about(problems: Iterable[Violation]) -> None:
    """Write one line for each problem: what, by which rule, and what to do."""
    for problem in problems:
        complain(" ".join(f"{problem.message} [{problem.rule}] {problem.remedy}".split()))
