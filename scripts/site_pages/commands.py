"""The page on the command line: every command, with its help."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from modular_tf.cli import arguments
from modular_tf.cli.examples import examples_text
from modular_tf.cli.verbs import VERBS
from site_pages.markdown import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.cli.verbs import Verb

_HEAD = """\
# Commands

The global options may stand before or after the name of a command. [Exit
statuses](exit-statuses.md) are the same for all commands.
"""


def page() -> str:
    """Return the page on every command."""
    commands = dict(_commands(arguments.PROGRAM, VERBS))
    rows = [(f"[`{name}`](#{_anchor(name)})", verb.help) for name, verb in commands.items()]
    parts = [_HEAD, table(("command", "what it does"), rows)]
    parts += ["## Global options\n", _options(_global_parser())]
    parts += [_section(name, verb) for name, verb in commands.items()]
    return "\n".join(parts)


def _commands(program: str, verbs: Mapping[str, Verb]) -> Iterator[tuple[str, Verb]]:
    for name, verb in verbs.items():
        if verb.family is None:
            yield f"{program} {name}", verb
        else:
            yield from _commands(f"{program} {name}", verb.family)


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _global_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=arguments.PROGRAM, add_help=False)
    arguments.add_global_options(parser)
    return parser


def _section(name: str, verb: Verb) -> str:
    parser = arguments.own_parser(name, verb)
    usage = parser.format_usage().removeprefix("usage: ").strip()
    return "\n".join(
        [
            f"## {name} {{#{_anchor(name)}}}\n",
            f"{(parser.description or verb.help).strip()}\n",
            f"```text\n{usage}\n```\n",
            _options(parser),
            f"```text\n{examples_text(name)}\n```\n",
        ]
    )


def _options(parser: argparse.ArgumentParser) -> str:
    rows = [(_names(action), _help(action)) for action in _actions(parser)]
    return table(("argument", "meaning"), rows) if rows else ""


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if "--help" not in action.option_strings]  # noqa: SLF001  (argparse has no other way)


def _help(action: argparse.Action) -> str:
    chosen = f" One of {', '.join(map(code, action.choices))}." if action.choices else ""
    return f"{(action.help or '').replace('%%', '%')}{chosen}"


def _names(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    if not action.option_strings:
        return code(action.metavar or action.dest)
    return ", ".join(code(f"{option}{value}") for option in action.option_strings)
