"""One plugin in a service: its newest record, and its library once it registers something."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.deferred import DeferredFactory
from modular_tf.events import EventLog
from modular_tf.events.event_log import INFO
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Concatenate

    from typing_extensions import ParamSpec

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.probe import Probe
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.registry import Registered
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.service.deferred_library import DeferredLibrary
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.registrations import Registrations

    _Given = ParamSpec("_Given")

_log = EventLog("plugin")  # asked before a plugin's own, which costs more, is made

# A plugin that the operator disabled is no fault.
_AS_INTENDED = frozenset((State.LOADED, State.DISABLED))


class Attempt:
    """One run over some plugins, from the first step to the last.

    `is_over` is set by its maker: nobody waits for the run any more.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._process = os.getpid()

    @property
    def is_under_way(self) -> bool:
        """Whether it runs, in this process."""
        return not self.is_over and self._process == os.getpid()


class PluginEntry:
    """The place of one plugin among those of a service, with its newest record. [any thread]

    Attributes:
        registrations: Where its library registers what it offers; None for the registries of the
            service.
        attempt: The run that processed it last, None for none.
        serving: What registers for it, None before it does.
    """

    def __init__(
        self,
        plugin: Plugin,
        registrations: Registrations | None = None,
        attempt: Attempt | None = None,
    ) -> None:
        self.registrations = registrations
        self.attempt = attempt
        self.serving: DeferredLibrary | None = None
        self._plugin = plugin
        self._state_told = plugin.state
        self._lock = ForkLock()

    @property
    def plugin(self) -> Plugin:
        """The newest record."""
        return self._plugin

    def change(
        self,
        step: Callable[Concatenate[Plugin, _Given], Plugin],
        *given: _Given.args,
        **named: _Given.kwargs,
    ) -> Plugin:
        """Replace the record by the next one, which `step` makes of it, and return that."""
        with self._lock:
            before = self._plugin
            self._plugin = after = step(before, *given, **named)
        if after is not before:
            log_step(before, after)
        return after

    def has_other_state(self) -> bool:
        """Return whether its state is another one than when this was called last."""
        before, self._state_told = self._state_told, self._plugin.state
        return self._state_told is not before

    @property
    def probe(self) -> Probe:
        """All that its bytes say; read now where the stored facts sufficed so far."""
        if self._plugin.probe is None:
            # What reads libraries is imported where one is read; known plugins are not.
            from modular_tf.discovery.linking.host_exports import host_exports  # noqa: PLC0415
            from modular_tf.discovery.probe import probe  # noqa: PLC0415

            found = probe(self._plugin.candidate, host_exports())
            self.change(lambda plugin: plugin._replace(probe=plugin.probe or found))
            return self._plugin.probe or found
        return self._plugin.probe

    @property
    def is_under_way(self) -> bool:
        """Whether a run processes it now."""
        return self.attempt is not None and self.attempt.is_under_way

    def anew(self, plugin: Plugin, attempt: Attempt | None = None) -> PluginEntry:
        """Return an entry for the same plugin, with what its file is now, from the beginning."""
        before = self._plugin
        return PluginEntry(plugin._replace(name=before.name, sealed=before.sealed), attempt=attempt)

    # -- what it serves ---------------------------------------------------------------------------

    @property
    def library(self) -> Library | None:
        """The mapped library, once it is."""
        return None if self.serving is None else self.serving.library

    @property
    def filesystems(self) -> Mapping[str, Registered]:
        """What it registered, by scheme."""
        return {} if self.serving is None else self.serving.registrations.filesystems

    @property
    def tables(self) -> Mapping[str, FilesystemTables]:
        """Its accepted filesystem tables, by scheme, served or not, once it is mapped."""
        return {} if self.serving is None else self.serving.tables

    @property
    def platform(self) -> DevicePlatform | None:
        """Its device platform, once it is loaded."""
        found = None if self.serving is None else self.serving.registrations.platform
        return None if isinstance(found, DeferredFactory) else found

    # -- the end ----------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        if self.serving is not None:
            self.serving.after_fork_in_child()

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Stop serving: files, filesystems, devices; add what went wrong to `failures`."""
        if self.serving is not None:
            self.serving.close(failures, at_exit=at_exit)


def log_step(before: Plugin | None, after: Plugin) -> None:
    """Log what a step decided about a plugin, and what became of it where the step is its last."""
    tells_all = _log.is_enabled_for(INFO)
    if tells_all:
        _log_decisions(after, already=len(before.decisions) if before else 0)
    if after.is_on_its_way or not (before is None or before.is_on_its_way):
        return
    state = after.state
    if state in _AS_INTENDED and not tells_all:
        return
    reason = after.reasons[0] if after.reasons else None
    write = after.log.info if state in _AS_INTENDED else after.log.warning
    write(
        "plugin.processed",
        outcome=state.value,
        reason=reason.message if reason else None,
        rule=reason.rule if reason else None,
    )


def _log_decisions(plugin: Plugin, already: int) -> None:
    if len(plugin.decisions) == already:
        return
    bound_log = plugin.log
    for stage, passed, rule, text in plugin.decisions[already:]:
        write = bound_log.debug if passed else bound_log.info
        write("plugin.decided", stage=stage, passed=passed, rule=rule, text=text)
