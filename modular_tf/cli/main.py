"""The entry point of the command `modular-tf`, and the table of its commands."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from modular_tf import __version__
from modular_tf.cli import process
from modular_tf.cli.frame import GlobalOptions, Group, LazyCommand
from modular_tf.cli.output import EXPECTED, message_of, report_error
from modular_tf.cli.process import (
    COMPLETION_VARIABLE,
    PROGRAM,
    Exit,
    OutputError,
    leave_on_second_interrupt,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHECK = "modular_tf.check"
"""The conformance kit; all other commands work without it."""

_FS = {
    "ls": LazyCommand("list directories", "fs.listing:ls"),
    "find": LazyCommand("list whole trees", "fs.listing:find"),
    "glob": LazyCommand("list what matches patterns", "fs.listing:glob"),
    "du": LazyCommand("show how much directories hold", "fs.listing:du"),
    "stat": LazyCommand("show size, kind and modification time", "fs.listing:stat"),
    "cat": LazyCommand("write files to standard output", "fs.reading:cat"),
    "head": LazyCommand("write the first lines of files", "fs.reading:head"),
    "tail": LazyCommand("write the last lines of files", "fs.reading:tail"),
    "cp": LazyCommand("copy, also between schemes and local paths", "fs.transfer:cp"),
    "mv": LazyCommand("move or rename", "fs.transfer:mv"),
    "rm": LazyCommand("remove", "fs.transfer:rm"),
    "sync": LazyCommand("make a directory like another one", "fs.transfer:sync"),
    "mkdir": LazyCommand("make directories", "fs.transfer:mkdir"),
}

_QUARANTINE = {
    "list": LazyCommand("list the quarantined plugins", "quarantine:list_quarantined"),
    "retry": LazyCommand("release plugins from quarantine and try them again", "quarantine:retry"),
    "clear": LazyCommand("release plugins from quarantine", "quarantine:clear"),
}

VERBS: Mapping[str, LazyCommand] = {
    "list": LazyCommand("list plugins, and why one is not loaded", "plugins:list_plugins"),
    "devices": LazyCommand("list devices", "devices:devices"),
    "schemes": LazyCommand("list filesystem schemes and their plugins", "plugins:schemes"),
    "kernels": LazyCommand("list the kernels of plugins", "kernels:kernels"),
    "ops": LazyCommand("list operations, or show one", "kernels:ops"),
    "run": LazyCommand("compute an operation on files of numpy", "kernels:run"),
    "paths": LazyCommand("list where plugins are searched for", "plugins:paths"),
    "inspect": LazyCommand("show what is in a plugin", "inspection:inspect"),
    "check": LazyCommand("check whether a plugin conforms to its interface", "check:check"),
    "new": LazyCommand("write the project of a new plugin", "new:new"),
    "headers": LazyCommand("print the path of the C headers for plugins", "plugins:headers"),
    "fetch": LazyCommand("get the plugins of a published package", "fetch:fetch"),
    "why": LazyCommand("explain why a name is served or not", "plugins:why"),
    "doctor": LazyCommand(
        "report what works here, and what TensorFlow will do with it", "doctor:doctor"
    ),
    "watch": LazyCommand("follow plugin files that come, change and go", "plugins:watch"),
    "lock": LazyCommand("write which plugins may load when frozen, or check", "lock:lock"),
    "quarantine": LazyCommand("work with quarantined plugins", commands=_QUARANTINE),
    "completion": LazyCommand(
        "print what completes command lines in a shell", "completion:completion"
    ),
    "fs": LazyCommand("work with files of any scheme", commands=_FS),
}

_FIRST_STEPS = f"""\
first steps:
  {PROGRAM} list                 which plugins there are, and why one is not loaded
  {PROGRAM} paths                where to put a plugin
  {PROGRAM} --plugin x.so list   the same with a library of yours
  {PROGRAM} fs ls ram://         work with files of a scheme that is served
  {PROGRAM} check x.so           check a library of yours
  {PROGRAM} completion --help    complete command lines by the tab key
"""


PROGRAM_COMMAND: click.Command = click.version_option(
    __version__, prog_name=PROGRAM, message="%(prog)s %(version)s", help="show the version"
)(
    Group(
        PROGRAM,
        VERBS,
        help="Find, load and use TensorFlow's filesystem and device plugins.",
        epilog=_FIRST_STEPS,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
)


def run(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (`Exit`).

    `words` are the arguments after the program's name, by default this process's own.
    """
    code: int = Exit.DONE
    try:
        process.prepare()
        if words is None and COMPLETION_VARIABLE in os.environ:
            from modular_tf.cli.completion import answer_shell  # noqa: PLC0415  (for shells only)

            code = answer_shell(PROGRAM_COMMAND)
        else:
            code = _run(sys.argv[1:] if words is None else words, is_own=words is None)
        process.expect_exit(code)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        process.give_up(sys.stdout)
        return process.expected_exit()
    except OutputError as error:
        process.give_up(sys.stdout)
        report_error(message_of(error), "standard output")
        return Exit.NO
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _run(words: Sequence[str], *, is_own: bool) -> int:
    """Run a command, in a process of its own or one that does more."""
    options = GlobalOptions()
    try:
        if is_own:
            leave_on_second_interrupt()
        with PROGRAM_COMMAND.make_context(PROGRAM, list(words), obj=options) as context:
            code: int = PROGRAM_COMMAND.invoke(context)
            return code
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        where = PROGRAM if error.ctx is None else error.ctx.command_path
        report_error(f"{error.format_message().rstrip('.')} (see `{where} --help`)")
        return Exit.USAGE
    except (BrokenPipeError, OutputError):
        raise
    except EXPECTED as error:
        filename = error.filename if isinstance(error, OSError) else None
        report_error(message_of(error), None if filename is None else os.fsdecode(filename))
        return Exit.NO
    except Exception as error:  # noqa: BLE001  (the last line of defence)
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(_CHECK):
            report_error(
                f"this needs the conformance kit, the package {_CHECK}, which is not installed; "
                "`pip install --force-reinstall modular_tf` brings it"
            )
            return Exit.NO
        if options.verbose:
            from traceback import print_exception  # noqa: PLC0415  (costs start-up time)

            print_exception(error)
        hint = "" if options.verbose else " (run again with -v for the traceback)"
        report_error(f"internal error of modular-tf: {type(error).__name__}: {error}{hint}")
        return Exit.OUR_FAULT
