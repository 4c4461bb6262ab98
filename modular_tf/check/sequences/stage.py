"""Where random sequences are tried: the plugin is loaded by workers alone."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Deviation
from modular_tf.check.sequences.performers import performer_of
from modular_tf.check.sequences.program import Replay
from modular_tf.check.sequences.search import Search
from modular_tf.check.sequences.worker import SequenceWorker
from modular_tf.check.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.sequences.program import Program

_PROGRAMS = 200
_LONGEST = 144
_SECONDS_OF_A_PROGRAM = 20.0
_SHRINK_SECONDS = 10.0
_MOST_STATEMENTS = 15


class SequenceStage(Session):
    """Has nothing loaded: a program leaves out what there is not.

    `calls` are the statements of the smallest program that failed, and the command that replays it.
    """

    @contextmanager
    def workspace(self, check: Check) -> Iterator[SequenceGround]:
        """Return what the check's function is given."""
        yield SequenceGround(self, check)


class SequenceGround:
    """What a check of random sequences is given."""

    def __init__(self, stage: SequenceStage, check: Check) -> None:
        self._stage = stage
        self._check = check

    def search(self) -> None:
        """Try random programs.

        Their number is the option `programs`, their length `longest_program`.

        Raises:
            Deviation: One failed; names the smallest one that fails, and how to replay it.
            Unsupported: Hypothesis is not installed.
            Blocked: The plugin cannot be loaded.
        """
        target = self._stage.target
        options = target.options
        with SequenceWorker(target, self._check, _SECONDS_OF_A_PROGRAM) as worker:
            search = Search(worker.perform, shrink_seconds=_SHRINK_SECONDS)
            search.run(
                performer_of(target.kind).steps(),
                programs=int(options.get("programs", _PROGRAMS)),
                longest=int(options.get("longest_program", _LONGEST)),
                seed=target.seed,
            )
        if search.best is None:
            return
        program, failure = search.best
        words = (*target.repeated_by, "--replay", self._token(program), target.path)
        command = shlex.join(("modular-tf", "check", *words))
        script = performer_of(target.kind).script(program)
        self._stage.calls[:] = [*script[-_MOST_STATEMENTS:], f"# {command}"]
        raise Deviation(
            f"{failure.message}, in a random sequence of {len(program.steps)}",
            expected=failure.expected,
            found=failure.found,
        )

    def _token(self, program: Program) -> str:
        target = self._stage.target
        replay = Replay(self._check.id, target.reached, target.scheme, target.ordinal, program)
        return replay.token()


GROUP = "sequences"
"""The group of the checks that are tried there."""
