"""One call of a command: its global options, its results, its service and its log."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from modular_tf.cli.output import Printer, report_problems
from modular_tf.discovery.privileges import is_privileged
from modular_tf.events.event_log import CRITICAL, ROOT, EventLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.service import PluginService


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
        self, *, load: bool | None = True, frozen: bool | None = None, runs_plugins: bool = True
    ) -> Iterator[PluginService]:
        """Run the service: discover, and with `load` load and register as well.

        Problems of the search are reported on standard error. `load` is None for a command that
        does either itself. `frozen` says whether plugins need to be in the lock file, by default as
        the options or the configuration say. Without `runs_plugins`, they are tried in child
        processes whatever the configuration says, and never mapped in this process.
        """
        from modular_tf.service.configuration import load_config  # noqa: PLC0415  (not for help)
        from modular_tf.service.service import PluginService  # noqa: PLC0415  (the native core)

        options, config = self.options, load_config(privileged=is_privileged())
        if frozen is not None or options.frozen:
            is_frozen = options.frozen if frozen is None else frozen
            config = replace(config, trust=replace(config.trust, frozen=is_frozen))
        if not runs_plugins:
            tries = "new" if config.first_contact == "never" else config.first_contact
            config = replace(config, first_contact=tries, load="lazy")
        with PluginService(
            config=config,
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


@contextmanager
def measured(options: GlobalOptions) -> Iterator[None]:
    """Measure the calls into plugins in the block for `--trace` and `--statistics`.

    Statistics are written when the block has ended, also by a failure. `OSError` if one of the
    files cannot be written.
    """
    with ExitStack() as ends:
        if options.trace is not None:
            from modular_tf.service.statistics import trace  # noqa: PLC0415  (few commands need it)

            ends.enter_context(trace(options.trace))
        if options.statistics is not None:
            from modular_tf.native.measured_calls import CountedCalls  # noqa: PLC0415  (likewise)
            from modular_tf.service.output_file import refuse_special, write_output  # noqa: PLC0415
            from modular_tf.service.statistics import statistics_of  # noqa: PLC0415

            path = options.statistics
            refuse_special(path)  # before the work is done
            counted = CountedCalls()
            ends.callback(lambda: write_output(path, statistics_of().prometheus().encode()))
            ends.callback(counted.close)
        yield
