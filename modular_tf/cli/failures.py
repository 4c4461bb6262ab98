"""Failures on standard error: one clear line each."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.standard_streams import OutputError, give_up
from modular_tf.cli.text import printable
from modular_tf.errors import ModularTFError
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.rules import Violation

PROGRAM = "modular-tf"

EXPECTED = (ModularTFError, OSError)
"""The errors that an operation can fail with; any other is an internal error."""


def report_error(message: str, subject: str | None = None) -> None:
    """Write `modular-tf: subject: message`, where standard error takes it."""
    with suppress(OSError):  # the end of the command tells of it
        sys.stdout.flush()
    about = "" if subject is None else f"{subject}: "
    try:
        sys.stderr.write(printable(redacted(f"{PROGRAM}: {about}{message}")) + "\n")
    except OSError:
        give_up(sys.stderr)


def message_of(error: BaseException, subject: str | None = None) -> str:
    """Return an error's message without the subject that it begins with."""
    said = error.strerror if isinstance(error, OSError) else None
    text = (said or str(error)).strip() or type(error).__name__
    if subject is None:
        return text
    # Messages name operation and path themselves; a line that begins with the path need not.
    operation = error.operation if isinstance(error, ModularTFError) else None
    for repeated in (f"{operation} {subject!r}: ", f"{subject}; ", f"{subject}: "):
        text = text.removeprefix(repeated)
    return text


class Failures:
    """Counts what failed, so that one bad file does not stop the rest."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        """Report a failure in the body of `with` as one about `subject`, and continue."""
        try:
            yield
        except (BrokenPipeError, OutputError):
            raise
        except EXPECTED as error:
            self.add(message_of(error, subject), subject)

    def add(self, message: str, subject: str) -> None:
        """Report one failure and count it."""
        self.count += 1
        report_error(message, subject)

    @property
    def exit_code(self) -> Exit:
        """`Exit.NO` if anything failed, else `Exit.DONE`."""
        return Exit.NO if self.count else Exit.DONE


def report_problems(problems: Iterable[Violation]) -> None:
    """Write one line for each problem: what, by which rule, and what to do."""
    for problem in problems:
        report_error(" ".join(f"{problem.message} [{problem.rule}] {problem.remedy}".split()))
