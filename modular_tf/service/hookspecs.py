"""What an installed package may do to a service: pluggy hooks.

A package announces an object or module with these functions under the entry point group
`modular_tf.hooks`, or the application passes it to `PluginService(hooks=[...])`; each function is
marked with `modular_tf.hookspecs.hookimpl`. All of them are called together: the application's own
first, then those of installed packages, as `tryfirst`, `trylast` and wrappers have it. One that
raises counts as one that returned None; a veto that raises forbids the plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.probe import Probe
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginChange, PluginRecord

PROJECT = "modular_tf"
ENTRY_POINT_GROUP = "modular_tf.hooks"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def modular_tf_plugin_paths(config: Config) -> Iterable[str]:  # type: ignore[empty-body]
    """Return files or directories to search too, with the precedence of configured ones."""


@hookspec(firstresult=True)
def modular_tf_veto(candidate: Candidate, probe: Probe) -> str | None:
    """Return why a candidate must not be loaded, None to let it pass. Nothing of it has run.

    The first reason ends the call.
    """


@hookspec
def modular_tf_filesystems() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return filesystems by scheme, of any kind that `PluginService.register_filesystem` takes."""


@hookspec
def modular_tf_device_factories() -> Iterable[Any]:  # type: ignore[empty-body]
    """Return device factories to register (`modular_tf.device.factory.DeviceFactory`)."""


@hookspec
def modular_tf_outcome(record: PluginRecord) -> None:
    """Take note of what became of a plugin."""


@hookspec
def modular_tf_change(change: PluginChange) -> None:
    """Take note of a plugin file that came, was replaced or went while the service runs."""
