"""The entry point of the command `modular-tf`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from modular_tf.cli import logs, standard_streams
from modular_tf.cli.arguments import Command, parse
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import EXPECTED, message_of, report_error
from modular_tf.cli.interrupts import leave_on_second_interrupt
from modular_tf.cli.measuring import measured
from modular_tf.cli.printer import Printer
from modular_tf.cli.standard_streams import OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHECK = "modular_tf.check"
"""The conformance kit; all other commands work without it."""

_ASKED_BY_SHELL = "_ARGCOMPLETE"
"""The variable by which a shell asks how a command line may go on, instead of running it."""


def run(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (`Exit`).

    Args:
        words: The arguments after the program's name. Default: this process's own.
    """
    if words is None and _ASKED_BY_SHELL in os.environ:
        from modular_tf.cli.completion.answers import answer_shell  # noqa: PLC0415  (for shells only)

        return answer_shell()
    try:
        standard_streams.prepare()
        code = _run(sys.argv[1:] if words is None else words, is_own=words is None)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        standard_streams.give_up(sys.stdout)
        return Exit.DONE
    except OutputError as error:
        standard_streams.give_up(sys.stdout)
        report_error(message_of(error), "standard output")
        return Exit.NO
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _run(words: Sequence[str], *, is_own: bool) -> int:
    """Run a command, in a process of its own or one that does more."""
    try:
        command = parse(words)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except ModuleNotFoundError as error:
        return _unexpected(error, traceback_wanted=False)
    try:
        if is_own:
            leave_on_second_interrupt()
        return _execute(command)
    except (BrokenPipeError, OutputError):
        raise
    except EXPECTED as error:
        filename = error.filename if isinstance(error, OSError) else None
        report_error(message_of(error), None if filename is None else os.fsdecode(filename))
        return Exit.NO
    except Exception as error:  # noqa: BLE001  (the last line of defence)
        return _unexpected(error, traceback_wanted=command.options.verbose > 0)


def _execute(command: Command) -> int:
    options = command.options
    logs.set_up(options.log, options.verbose)
    with measured(options):
        result: int = command.module.execute(options, Printer(json=options.json))
    return result


def _unexpected(error: Exception, *, traceback_wanted: bool) -> Exit:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(_CHECK):
        report_error(
            f"this needs the conformance kit, the package {_CHECK}, which is not installed; "
            "`pip install --force-reinstall modular_tf` brings it"
        )
        return Exit.NO
    if traceback_wanted:
        from traceback import print_exception  # noqa: PLC0415  (costs start-up time)

        print_exception(error)
    hint = "" if traceback_wanted else " (run again with -v for the traceback)"
    report_error(f"internal error of modular-tf: {type(error).__name__}: {error}{hint}")
    return Exit.OUR_FAULT
