"""The service that one command works with."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.cli.failures import report_problems
from modular_tf.discovery.privileges import is_privileged

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from modular_tf.service.configuration import Config
    from modular_tf.service.service import PluginService


@contextmanager
def session(
    options: Namespace,
    *,
    load: bool | None = True,
    frozen: bool | None = None,
    runs_plugins: bool = True,
) -> Iterator[PluginService]:
    """Run the way for one command: discover, and with `load` load and register as well.

    What went wrong while searching is told on standard error.

    Args:
        options: The global options.
        load: Whether to load; None for a command that does either itself.
        frozen: Whether plugins need to be in the lock file; by default as the options or the
            configuration say.
        runs_plugins: Whether code of plugins may run in this process; where it may not, they are
            tried in child processes whatever the configuration says, and mapped by nobody.
    """
    from modular_tf.service.service import PluginService  # noqa: PLC0415  (loads the native core)

    config = _config(frozen=frozen if frozen is not None else options.frozen or None)
    with PluginService(
        config=config if runs_plugins else _running_nothing(config),
        plugin_paths=tuple(options.plugin),
        plugin_dirs=tuple(options.plugin_dir),
        bundled=options.bundled,
    ) as service:
        if load is not None:
            report = service.load() if load else service.discover()
            report_problems(report.problems)
        yield service


def _config(*, frozen: bool | None) -> Config:
    """Return the user's configuration, with another word on freezing if there is one."""
    from modular_tf.service.configuration import load_config  # noqa: PLC0415  (the service loads it too)

    config = load_config(privileged=is_privileged())
    if frozen is None:
        return config
    return replace(config, trust=replace(config.trust, frozen=frozen))


def _running_nothing(config: Config) -> Config:
    """Return a configuration by which new plugins run in child processes only."""
    tries = "new" if config.first_contact == "never" else config.first_contact
    return replace(config, first_contact=tries, load="lazy")
