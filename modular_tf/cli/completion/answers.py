"""The answer to a shell that asks how a command line may go on."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from modular_tf.cli.arguments import PROGRAM, add_global_options, add_verb_arguments
from modular_tf.cli.completion.candidates import completer_of
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from modular_tf.cli.verbs import Verb


def answer_shell() -> Exit:
    """Write the answer where the shell's function reads it; nothing where argcomplete is missing.

    argcomplete ends the process with its answer.
    """
    try:
        from argcomplete import autocomplete  # noqa: PLC0415  (an extra)
        from argcomplete.completers import SuppressCompleter  # noqa: PLC0415
    except ImportError:
        return Exit.NO
    parser = _parser(os.environ.get("COMP_LINE", "").split())
    nothing = SuppressCompleter()
    autocomplete(parser, always_complete_options=False, default_completer=nothing)
    return Exit.NO


def _parser(words: Collection[str]) -> argparse.ArgumentParser:
    """Return a parser of the whole command line; only verbs among these words have arguments."""
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    parser.add_argument("--version", action="version", help="show the version")
    _add_global_options(parser)
    _add_verbs(parser, VERBS, words)
    return parser


def _add_verbs(
    parser: argparse.ArgumentParser, verbs: Mapping[str, Verb], words: Collection[str]
) -> None:
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, verb in verbs.items():
        one = commands.add_parser(
            name, help=verb.help, allow_abbrev=False, conflict_handler="resolve"
        )
        if name in words:
            if verb.family is None:
                add_verb_arguments(one, verb)
                _set_completers(one, name)
            else:
                _add_verbs(one, verb.family, words)
        _add_global_options(one)


def _add_global_options(parser: argparse.ArgumentParser) -> None:
    add_global_options(parser)
    _set_completers(parser, "")


def _set_completers(parser: argparse.ArgumentParser, verb: str) -> None:
    for action in parser._actions:  # noqa: SLF001  (argparse has no other way)
        if completer := completer_of(verb, action.dest, action.metavar):
            action.completer = completer  # type: ignore[attr-defined]
