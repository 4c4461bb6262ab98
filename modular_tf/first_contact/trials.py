"""Trying plugins in child processes: what the application calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.first_contact.batch import Batch
from modular_tf.native.preloading import FORK_HANDLERS, SIGNAL_STACKS, preload
from modular_tf.processes.interpreter import child_environment, isolated_command
from modular_tf.processes.zygote_process import Zygotes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits
    from modular_tf.first_contact.task import Task


_ZYGOTE = "modular_tf.first_contact.zygote"


class Trials:
    """Tries plugins, batch after batch, in children of one zygote.

    The first batch starts the zygote, which runs until `close`, or until it has been idle for a
    while; the next batch then starts another. It ends with the application. Used by one thread at a
    time. After a fork the child starts a zygote of its own.

    Args:
        limits: The limits of each trial.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._zygotes = zygotes_of(limits)

    def try_plugins(
        self,
        tasks: Sequence[Task],
        tell: Callable[[int, Finding], None] | None = None,
        mark: Callable[[int], AbstractContextManager[str]] | None = None,
    ) -> list[Finding]:
        """Try plugins and return their findings, when all children have ended or been killed.

        Args:
            tasks: The plugins.
            tell: Called with a task's index and finding as soon as it is known.
            mark: Marks a task, by its index, while its trial may end this process; it yields the
                mark's path.

        Returns:
            The finding of each task; LD-063 where it could not be tried.
        """
        batch = Batch(tasks, self._limits, self._zygotes, tell, mark)
        batch.run()
        return [batch.findings[number] for number in range(len(tasks))]

    def close(self) -> None:
        """End the zygote and the processes that it started. Safe to call twice."""
        self._zygotes.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def try_plugins(
    tasks: Sequence[Task],
    limits: Limits,
    tell: Callable[[int, Finding], None] | None = None,
    mark: Callable[[int], AbstractContextManager[str]] | None = None,
) -> list[Finding]:
    """Try one batch of plugins; see `Trials.try_plugins`. No process is left when it returns."""
    with Trials(limits) as trials:
        return trials.try_plugins(tasks, tell, mark)


def zygotes_of(limits: Limits) -> Zygotes:
    """Return what starts zygotes that try plugins.

    Args:
        limits: The limits of each trial.
    """

    def command(python: str, own: dict[str, Any]) -> list[str]:
        return isolated_command(python, _ZYGOTE, {**own, "limits": limits.as_dict()})

    def environment() -> dict[str, str]:
        stacked = preload(child_environment(os.environ), SIGNAL_STACKS)
        return preload(stacked, FORK_HANDLERS)

    return Zygotes(command, environment)
