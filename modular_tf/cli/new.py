"""Write the project of a new plugin: one that builds, works, and passes `modular-tf check`.

It is a filesystem in memory, or a device that computes nothing in the memory of the host: few
files, with a test, a wheel and a workflow, to be changed into what you have in mind. Its README.md
tells the commands.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from modular_tf.check.project_template.names import KINDS, project_names
from modular_tf.check.project_template.project import write_project
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.failures import message_of, report_error
from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.check.project_template.names import ProjectNames
    from modular_tf.cli.printer import Printer


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments and options of this verb."""
    parser.add_argument("kind", choices=KINDS, help="what the plugin offers")
    parser.add_argument(
        "name", metavar="NAME", help="of the project: letters, digits, single - and _ between"
    )
    parser.add_argument(
        "--directory", metavar="DIR", help="where to write it; must not exist (default: NAME)"
    )
    parser.add_argument(
        "--install-from", metavar="SOURCE",
        help="what its workflow installs as modular_tf: a URL of a wheel, git+https://..., or the "
        "path of a checkout in the project (default: this version, from an index)",
    )  # fmt: skip
    registered = parser.add_mutually_exclusive_group()
    registered.add_argument(
        "--scheme", help="of a filesystem, such as `store` for store://... (default: from NAME)"
    )
    registered.add_argument("--type", help="of a device, letters A to Z and _ (default: from NAME)")


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf new` and return its exit status."""
    try:
        names = project_names(
            options.kind, options.name, scheme=options.scheme, device_type=options.type
        )
        directory = os.path.abspath(options.directory or names.project)
        files = write_project(names, directory, options.install_from)
    except InvalidArgumentError as error:
        report_error(str(error))
        return Exit.USAGE
    except OSError as error:
        report_error(message_of(error), directory)
        return Exit.NO
    if printer.json:
        printer.json_object(directory=directory, files=list(files), **names.as_dict())
    else:
        _show(names, directory, files, printer)
    return Exit.DONE


def _show(names: ProjectNames, directory: str, files: tuple[str, ...], printer: Printer) -> None:
    """Show the files to a pipe, and to a person what to do with them."""
    if not printer.terminal:
        for file in files:
            printer.line(os.path.join(directory, file))
        return
    printer.line(
        f"a {names.kind} plugin for {names.users_write}, {len(files)} files in {directory}"
    )
    printer.line()
    printer.line(f"  cd {shlex.quote(os.path.relpath(directory))}")
    printer.line("  less README.md    # how to build, check, test, install and change it")
