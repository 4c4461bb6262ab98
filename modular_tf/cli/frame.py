"""The frame of every command: click's commands and groups, with global options, help and examples.

A command is a function `f(call, **values)` that returns its exit code: the call has its global
options and its service, and writes its results; the values are those of its own arguments. Its
docstring is its help.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import augment_usage_errors
from click.shell_completion import CompletionItem

from modular_tf.cli import session
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.session import GlobalOptions, Invocation
from modular_tf.cli.words import DIR, FILE, PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# -- arguments ------------------------------------------------------------------------------------


class Argument(click.Argument):
    """A positional argument with a line in the help, which says what it means."""

    def __init__(self, declarations: list[str], *, help: str, **values: Any) -> None:  # noqa: A002
        super().__init__(declarations, **values)
        self._meaning = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and its meaning."""
        [shown] = self.get_usage_pieces(ctx)
        return shown, self._meaning


def argument(name: str, *, help: str, **values: Any) -> Callable[[Any], Any]:  # noqa: A002
    """Give a command a positional argument; the values are click's."""
    return click.argument(name, cls=Argument, help=help, **values)


def _note(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Add the value of a global option to those that stand elsewhere on the command line."""
    options, name = ctx.obj, str(option.name)
    if name == "no_bundled":
        options.bundled = options.bundled and not value
    elif isinstance(value, tuple):
        getattr(options, name).extend(value)
    elif name == "verbose":
        options.verbose += value
    elif value is not None and value is not False:
        setattr(options, name, value)


def _global_option(*names: str, **values: Any) -> click.Option:
    return click.Option([*names], expose_value=False, callback=_note, **values)


GLOBAL_OPTIONS = (
    _global_option(
        "--plugin", type=PATH, multiple=True,
        help="also search this library or folder; may be repeated",
    ),
    _global_option(
        "--plugin-dir", type=DIR, multiple=True, help="also search this folder; may be repeated"
    ),
    _global_option(
        "--no-bundled", is_flag=True, help="leave out the plugins that come with the package"
    ),
    _global_option(
        "--frozen", is_flag=True, help="refuse plugins that are not in the lock file (see `lock`)"
    ),
    _global_option("--json", is_flag=True, help="write one JSON object"),
    _global_option(
        "-v", "--verbose", count=True, help="log to standard error; twice for every step"
    ),
    _global_option(
        "--log", type=click.Choice(["pretty", "json", "off"]),
        help="how to log to standard error; otherwise as MODULAR_TF_LOG says",
    ),
    _global_option(
        "--trace", type=FILE,
        help="write each call into a plugin to a file for Perfetto or chrome://tracing",
    ),
    _global_option(
        "--statistics", type=FILE,
        help="write counts and times of the calls into plugins for Prometheus; - for standard"
        " output",
    ),
)  # fmt: skip


# -- commands -------------------------------------------------------------------------------------


class _Framed(click.Command):
    """What commands and groups have in common: global options, and the order of the help."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its own arguments and options, then the global ones."""
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option that shows the help, in words like those of the others."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this help"
        return option

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the line that shows how it is called."""
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix="usage: ")

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: from its 8.5 on click has a section of its own for arguments."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its arguments, its options and the global options."""
        sections: dict[str, list[tuple[str, str]]] = {"arguments": [], "options": []}
        for each in super().get_params(ctx):
            if record := each.get_help_record(ctx):
                is_argument = isinstance(each, click.Argument)
                sections["arguments" if is_argument else "options"].append(record)
        records = (each.get_help_record(ctx) for each in GLOBAL_OPTIONS)
        sections["global options"] = [record for record in records if record]
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Command(_Framed):
    """A command, whose help ends with examples.

    `calls_plugins` says whether it may call plugins in its own process.
    """

    def __init__(self, *, calls_plugins: bool = True, **values: Any) -> None:
        super().__init__(**values)
        self._calls_plugins = calls_plugins

    def invoke(self, ctx: click.Context) -> Any:
        """Run it and return its exit code."""
        options: GlobalOptions = ctx.obj
        if not self._calls_plugins and (options.trace or options.statistics):
            ctx.fail("--trace and --statistics: this command calls no plugin in its process")
        session.set_up_log(options.log, options.verbose)
        with session.measured(options), augment_usage_errors(ctx):
            return self.callback(Invocation(options), **ctx.params)  # type: ignore[misc]  # commands have one

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its examples."""
        formatter.write(f"\n{examples_text(ctx.command_path)}\n")


def command(kind: type[Command] = Command, **values: Any) -> Callable[[Any], click.Command]:
    """Make a command of a function; see the description of this module."""
    return click.command(cls=kind, **values)


class Verb(NamedTuple):
    """A command, or a group of commands, that is imported when it is used.

    `help` is its line in the list of commands; `target` is module and name of the command below
    `modular_tf.cli`, empty for a group; `family` are the commands of a group by name.
    """

    help: str
    target: str = ""
    family: Mapping[str, Verb] | None = None


class Group(_Framed, click.Group):
    """Commands that are imported when they are used, so that each starts fast."""

    def __init__(self, name: str, verbs: Mapping[str, Verb], **values: Any) -> None:
        super().__init__(name, subcommand_metavar="COMMAND [ARGUMENTS]...", **values)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands."""
        del ctx
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, None for none."""
        del ctx
        verb = self._verbs.get(cmd_name)
        if verb is None:
            return None
        if verb.family is not None:
            return Group(cmd_name, verb.family, help=f"{verb.help.capitalize()}.")
        module, _, name = verb.target.partition(":")
        found: click.Command = getattr(import_module(f"modular_tf.cli.{module}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named; a name that is close to another one says so."""
        if args[0] not in self._verbs and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

            close = get_close_matches(args[0], self._verbs, n=1)
            there = f"there are: {', '.join(self._verbs)}"
            ctx.fail(f"no command {args[0]!r}; {f'did you mean {close[0]!r}?' if close else there}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before the command; nothing at all shows the help."""
        if not args and not ctx.resilient_parsing:
            sys.stderr.write(f"{ctx.get_help()}\n")
            ctx.exit(Exit.USAGE)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        with formatter.section("commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self._verbs.items()])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where to read on."""
        formatter.write(f"\n`{ctx.command_path} COMMAND --help` describes each.\n")
        if self.epilog:
            formatter.write(f"\n{self.epilog}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return its commands and options that begin with a text."""
        return [
            *(
                CompletionItem(name, help=verb.help)
                for name, verb in self._verbs.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def examples() -> Mapping[str, Mapping[str, str]]:
    """Return, for each command such as `fs ls`, command lines and what they are for.

    The lines lack the name of the program.
    """
    from modular_tf.tables import read_table  # noqa: PLC0415  (for help only)

    return read_table("cli/examples.toml")


def examples_text(command_path: str) -> str:
    """Return the examples of a command such as `modular-tf fs ls`, as its help shows them."""
    program, _, verb = command_path.partition(" ")
    lines = ["examples:"]
    for words, purpose in examples().get(verb, {}).items():
        lines += [f"  {program} {words}", f"      {purpose}"]
    return "\n".join(lines)
