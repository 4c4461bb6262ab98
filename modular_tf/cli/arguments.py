"""Parsing a command line: the verb's module and its options."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf import __version__
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.logs import OUTPUTS, VARIABLE
from modular_tf.cli.verbs import VERBS, Verb, module_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = "modular-tf"
_PURPOSE = "Find, load and use TensorFlow's filesystem and device plugins."
_STANDARD_OUTPUT = 1
_USUAL_COLUMNS = 80
_FIRST_STEPS = f"""
first steps:
  {PROGRAM} list                   which plugins there are, and why one is not loaded
  {PROGRAM} paths                  where to put a plugin
  {PROGRAM} --plugin x.so list     the same with a library of yours
  {PROGRAM} fs ls ram://           work with files of a scheme that is served
  {PROGRAM} check x.so             check a library of yours
  {PROGRAM} completion --help      complete command lines by the tab key
"""


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal, without a module that would slow down each start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class _FamilyHelp(_Help, argparse.RawDescriptionHelpFormatter):
    """The same, with unchanged lines of the description."""


class _VerbHelp(_Help):
    """The same, with paragraphs in the description, and examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from modular_tf.cli.examples import HEADING  # noqa: PLC0415  (for help only)

        if text.startswith(HEADING):
            return text
        paragraphs = (
            super(_VerbHelp, self)._fill_text(one, width, indent) for one in text.split("\n\n")
        )
        return "\n\n".join(paragraphs)


class _VerbParser(argparse.ArgumentParser):
    """The parser of a verb, whose help ends with examples."""

    def format_help(self) -> str:
        """Return the help."""
        from modular_tf.cli.examples import examples_text  # noqa: PLC0415  (for help only)

        self.epilog = examples_text(self.prog)
        return super().format_help()


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(_STANDARD_OUTPUT).columns)
    except (OSError, ValueError):
        return _USUAL_COLUMNS


class Command(NamedTuple):
    """A verb's module and the options it was given."""

    module: Any
    options: argparse.Namespace


def parse(words: Sequence[str]) -> Command:
    """Return the command of a command line; global options may precede or follow the verb.

    Raises:
        SystemExit: With 2 after wrong usage, with 0 after help was asked for.
    """
    options = argparse.Namespace(
        plugin=[], plugin_dir=[], bundled=True, json=False, verbose=0, log=None, frozen=False,
        trace=None, statistics=None,
    )  # fmt: skip
    program, verbs, purpose = PROGRAM, VERBS, _PURPOSE
    while True:
        parser = _family_parser(program, verbs, purpose)
        if not words:
            parser.print_help(sys.stderr)
            if program == PROGRAM:
                sys.stderr.write(_FIRST_STEPS)
            parser.exit(Exit.USAGE)
        parser.parse_args(words, namespace=options)
        name, *words = options.command
        program, verb = f"{program} {name}", _look_up(parser, verbs, name)
        if verb.family is None:
            return _parse_verb(program, verb, words, options)
        verbs, purpose = verb.family, f"{verb.help.capitalize()}."


def _look_up(parser: argparse.ArgumentParser, verbs: Mapping[str, Verb], name: str) -> Verb:
    if name not in verbs:
        from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

        close = get_close_matches(name, verbs, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(verbs)}"
        parser.error(f"no command {name!r}; {hint}")
    return verbs[name]


def _parse_verb(
    program: str, verb: Verb, words: Sequence[str], options: argparse.Namespace
) -> Command:
    parser = own_parser(program, verb)
    add_global_options(parser)
    parser.parse_args(words, namespace=options)
    if not verb.calls_plugins and (options.trace or options.statistics):
        parser.error("--trace and --statistics: this command calls no plugin in its process")
    return Command(module_of(verb), options)


def own_parser(program: str, verb: Verb) -> argparse.ArgumentParser:
    """Return the parser of a verb's own arguments, without the global options."""
    parser = _VerbParser(
        prog=program,
        description=module_of(verb).__doc__,
        formatter_class=_VerbHelp,
        allow_abbrev=False,
        conflict_handler="resolve",  # `-h` is the sizes of `fs ls`, and `--help` is still the help
    )
    add_verb_arguments(parser, verb)
    return parser


def add_verb_arguments(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """Add a verb's own arguments to a parser."""
    module_of(verb).add_arguments(parser)


def _family_parser(
    program: str, verbs: Mapping[str, Verb], purpose: str
) -> argparse.ArgumentParser:
    width = max(map(len, verbs))
    table = "\n".join(f"  {name:{width}}  {verb.help}" for name, verb in verbs.items())
    parser = argparse.ArgumentParser(
        prog=program,
        description=purpose,
        epilog=f"commands:\n{table}\n\n`{program} COMMAND --help` describes each.",
        formatter_class=_FamilyHelp,
        allow_abbrev=False,
    )
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.PARSER)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    add_global_options(parser)
    return parser


def add_global_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every verb; without default, so that earlier values stay."""
    group = parser.add_argument_group("global options")
    left_alone = argparse.SUPPRESS
    group.add_argument(
        "--plugin", metavar="PATH", action="append", default=left_alone,
        help="also look at this library or folder; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--plugin-dir", metavar="DIR", action="append", default=left_alone,
        help="also search this folder; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--no-bundled", dest="bundled", action="store_false", default=left_alone,
        help="leave out the plugins that come with the package",
    )  # fmt: skip
    group.add_argument(
        "--frozen", action="store_true", default=left_alone,
        help="refuse plugins that are not in the lock file (see `lock`)",
    )  # fmt: skip
    group.add_argument(
        "--json", action="store_true", default=left_alone, help="write one JSON object"
    )
    group.add_argument(
        "-v", "--verbose", action="count", default=left_alone,
        help="log to standard error; twice for every step",
    )  # fmt: skip
    group.add_argument(
        "--log", choices=OUTPUTS, default=left_alone,
        help=f"how to log to standard error; otherwise as {VARIABLE} says",
    )  # fmt: skip
    group.add_argument(
        "--trace", metavar="FILE", default=left_alone,
        help="write each call into a plugin to a file for Perfetto or chrome://tracing",
    )  # fmt: skip
    group.add_argument(
        "--statistics", metavar="FILE", default=left_alone,
        help="write counts and times of the calls into plugins for Prometheus; - for standard"
        " output",
    )  # fmt: skip
