"""Return where the C headers for plugin authors lie.

For a compiler: -I"$(modular-tf headers)". For CMake:
-Dmodular_tf_DIR="$(modular-tf headers --cmake)".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.exit_codes import Exit
from modular_tf.headers import cmake_directory, include_directory

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from modular_tf.cli.printer import Printer

_DIRECTORIES = {"include": include_directory, "cmake": cmake_directory}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this verb."""
    only = parser.add_mutually_exclusive_group()
    for name, meaning in (("include", "for -I (the default)"), ("cmake", "for -Dmodular_tf_DIR")):
        only.add_argument(
            f"--{name}",
            dest="directory",
            action="store_const",
            const=name,
            default="include",
            help=f"write this directory, {meaning}",
        )


def execute(options: Namespace, printer: Printer) -> Exit:
    """Run `modular-tf headers` and return its exit status."""
    directories = {name: find() for name, find in _DIRECTORIES.items()}
    if printer.json:
        printer.json_object(**directories)
    else:
        printer.line(directories[options.directory])
    return Exit.DONE
