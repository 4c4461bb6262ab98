"""Print what a shell needs to complete command lines when the tab key is pressed.

It belongs into the start file of bash or zsh, there behind compinit, or into a file of fish's own.
Commands, options, plugins, operations, schemes, files and what is in stores are completed; for a
store a shell waits two seconds at most.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.cli.arguments import PROGRAM
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import report_error

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer

_SHELLS = ("bash", "zsh", "fish")
# None of bash's fallbacks: behind the colon of a URI it would offer names of the root directory.
_BASH_OPTIONS = ("-o", "nospace")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell that is to complete")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf completion` and return its exit status."""
    try:
        from argcomplete.shell_integration import shellcode  # noqa: PLC0415  (an extra)
    except ImportError:
        report_error("this needs argcomplete; `pip install 'modular_tf[cli]'` installs it")
        return Exit.NO
    code = shellcode([PROGRAM], shell=options.shell, complete_arguments=_BASH_OPTIONS)
    if printer.json:
        printer.json_object(shell=options.shell, code=code)
    else:
        sys.stdout.write(code)
    return Exit.DONE
