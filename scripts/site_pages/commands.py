"""The page on the command line: every command, with its help."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

from modular_tf.cli.frame import GLOBAL_OPTIONS, Argument, examples_text
from modular_tf.cli.main import PROGRAM_COMMAND, VERBS
from site_pages.markdown import code, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from modular_tf.cli.frame import LazyCommand

_HEAD = """\
# Commands

The global options may stand before or after the name of a command. [Exit
statuses](exit-statuses.md) are the same for all commands.
"""


def page() -> str:
    """Return the page on every command."""
    root = click.Context(PROGRAM_COMMAND, info_name=PROGRAM_COMMAND.name)
    commands = dict(_commands(root, VERBS))
    rows = [
        (f"[`{ctx.command_path}`](#{_anchor(ctx)})", verb.help) for ctx, verb in commands.items()
    ]
    parts = [_HEAD, table(("command", "what it does"), rows)]
    parts += ["## Global options\n", _arguments(root, GLOBAL_OPTIONS)]
    parts += [_section(ctx) for ctx in commands]
    return "\n".join(parts)


def _commands(
    parent: click.Context, verbs: Mapping[str, LazyCommand]
) -> Iterator[tuple[click.Context, LazyCommand]]:
    """Yield each command that is no group, as the context in which it would run."""
    for name, verb in verbs.items():
        command = parent.command.get_command(parent, name)  # type: ignore[attr-defined]
        context = click.Context(command, info_name=name, parent=parent)
        if verb.commands is None:
            yield context, verb
        else:
            yield from _commands(context, verb.commands)


def _anchor(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _section(context: click.Context) -> str:
    name, command = context.command_path, context.command
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    return "\n".join(
        [
            f"## {name} {{#{_anchor(context)}}}\n",
            f"{inspect.cleandoc(command.help or '')}\n",
            f"```text\n{usage}\n```\n",
            _arguments(context, command.params),
            f"```text\n{examples_text(name)}\n```\n",
        ]
    )


def _arguments(context: click.Context, params: Iterable[click.Parameter]) -> str:
    rows = []
    for each in params:
        if record := each.get_help_record(context):
            names, meaning = record
            is_one = isinstance(each, Argument)
            rows.append((", ".join(map(code, [names] if is_one else names.split(", "))), meaning))
    return table(("argument", "meaning"), rows) if rows else ""
