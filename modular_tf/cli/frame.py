"""The frame of every command: click's commands and groups, with global options, help and examples.

A command is a function `f(call, **values)` that returns its exit code: the call (`Invocation`) has
its global options and its service, and writes its results; the values are those of its own
arguments. Its docstring is its help.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import augment_usage_errors

from modular_tf.cli.output import Printer, report_problems
from modular_tf.cli.process import Exit
from modular_tf.cli.values import DIR, FILE, PATH
from modular_tf.discovery.privileges import is_privileged
from modular_tf.events.event_log import CRITICAL, ROOT, EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from click.shell_completion import CompletionItem

    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService


# -- calls ----------------------------------------------------------------------------------------


@dataclass
class GlobalOptions:
    """The values of the global options, wherever they stand on the command line."""

    plugin: list[str] = field(default_factory=list)
    plugin_dir: list[str] = field(default_factory=list)
    bundled: bool = True
    frozen: bool = False
    json: bool = False
    verbose: int = 0
    log: str | None = None
    trace: str | None = None
    statistics: str | None = None


class Invocation(Printer):
    """One call of a command: it writes results, and runs the service that they come from."""

    def __init__(self, options: GlobalOptions) -> None:
        super().__init__(json=options.json)
        self.options = options

    @contextmanager
    def session(
        self, *, load: bool | None = True, adapted: Callable[[Config], Config] = lambda it: it
    ) -> Iterator[PluginService]:
        """Run the service: discover, and with `load` load and register as well.

        Problems of the search are reported on standard error. `load` is None for a command that
        does either itself. `adapted` changes the configuration for this command.
        """
        from modular_tf.service.configuration import load_config  # noqa: PLC0415  (not for help)
        from modular_tf.service.service import PluginService  # noqa: PLC0415  (the native core)

        options, config = self.options, load_config(privileged=is_privileged())
        if options.frozen:
            config = replace(config, trust=replace(config.trust, frozen=True))
        with PluginService(
            config=adapted(config),
            plugin_paths=tuple(options.plugin),
            plugin_dirs=tuple(options.plugin_dir),
            bundled=options.bundled,
        ) as service:
            if load is not None:
                report = service.load() if load else service.discover()
                report_problems(report.problems)
            yield service


def set_up_log(output: str | None, verbosity: int) -> None:
    """Configure the log of a command on standard error, if it was requested.

    `output` is "pretty", "json" or "off", None where the command line names none. `verbosity` is
    the number of `-v`: 1 for outcomes, from 2 on every step too.
    """
    from_environment = output is None and verbosity == 0
    if from_environment and not os.environ.get("MODULAR_TF_LOG"):
        # What a user must know is in the result, and a log costs time.
        if "logging" in sys.modules:
            sys.modules["logging"].getLogger(ROOT).setLevel(CRITICAL)
        else:
            EventLog.default_level = CRITICAL
        return
    from modular_tf.service.log_output import configure_logging, follow_environment  # noqa: PLC0415  (likewise)

    if from_environment:
        follow_environment()
    else:
        configure_logging(output or "pretty", level="debug" if verbosity > 1 else "info")


# -- arguments ------------------------------------------------------------------------------------


class Argument(click.Argument):
    """A positional argument with a line in the help, which describes it."""

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
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this help"
        return option

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix="usage: ")

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: from its 8.5 on click has a section of its own for arguments."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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

    `calls_plugins`: whether it may call plugins in its own process.
    """

    def __init__(self, *, calls_plugins: bool = True, **values: Any) -> None:
        super().__init__(**values)
        self._calls_plugins = calls_plugins

    def invoke(self, ctx: click.Context) -> Any:
        """Run it and return its exit code; its calls into plugins are measured on request.

        Statistics are written at its end, also after a failure. `OSError` if they or the trace
        cannot be written.
        """
        options: GlobalOptions = ctx.obj
        if not self._calls_plugins and (options.trace or options.statistics):
            ctx.fail("--trace and --statistics: this command calls no plugin in its process")
        set_up_log(options.log, options.verbose)
        with augment_usage_errors(ctx), ExitStack() as ends:
            if options.trace is not None:
                from modular_tf.service.statistics import trace  # noqa: PLC0415  (few commands need it)

                ends.enter_context(trace(options.trace))
            if (path := options.statistics) is not None:
                from modular_tf.native.measured_calls import CountedCalls  # noqa: PLC0415  (likewise)
                from modular_tf.service.output_file import refuse_special, write_output  # noqa: PLC0415
                from modular_tf.service.statistics import statistics_of  # noqa: PLC0415

                refuse_special(path)  # before the work is done
                counted = CountedCalls()
                ends.callback(lambda: write_output(path, statistics_of().prometheus().encode()))
                ends.callback(counted.close)
            return self.callback(Invocation(options), **ctx.params)  # type: ignore[misc]  # commands have one

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its examples."""
        formatter.write(f"\n{examples_text(ctx.command_path)}\n")


def command(kind: type[Command] = Command, **values: Any) -> Callable[[Any], click.Command]:
    """Make a command of a function; see the description of this module."""
    return click.command(cls=kind, **values)


class LazyCommand(NamedTuple):
    """A command, or a group of commands, that is imported when it is used.

    `help` is its line in the list of commands; `target` is module and name of the command below
    `modular_tf.cli`, empty for a group; `commands` are those of a group by name.
    """

    help: str
    target: str = ""
    commands: Mapping[str, LazyCommand] | None = None


class Group(_Framed, click.Group):
    """Commands that are imported when they are used, so that each starts fast."""

    def __init__(self, name: str, commands: Mapping[str, LazyCommand], **values: Any) -> None:
        super().__init__(name, subcommand_metavar="COMMAND [ARGUMENTS]...", **values)
        self._lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, None for none."""
        del ctx
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return None
        if lazy.commands is not None:
            return Group(cmd_name, lazy.commands, help=f"{lazy.help.capitalize()}.")
        module, _, name = lazy.target.partition(":")
        found: click.Command = getattr(import_module(f"modular_tf.cli.{module}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named; a wrong one is an error, with a name close to it."""
        if args[0] not in self._lazy and not ctx.resilient_parsing:
            from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

            close = get_close_matches(args[0], self._lazy, n=1)
            there = f"there are: {', '.join(self._lazy)}"
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
            formatter.write_dl([(name, lazy.help) for name, lazy in self._lazy.items()])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where to read on."""
        formatter.write(f"\n`{ctx.command_path} COMMAND --help` describes each.\n")
        if self.epilog:
            formatter.write(f"\n{self.epilog}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return its commands and options that begin with a text."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  (for shells only)

        return [
            *(
                CompletionItem(name, help=lazy.help)
                for name, lazy in self._lazy.items()
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
    program, _, name = command_path.partition(" ")
    lines = ["examples:"]
    for words, purpose in examples().get(name, {}).items():
        lines += [f"  {program} {words}", f"      {purpose}"]
    return "\n".join(lines)
