"""One plugin on its way through a service: probed, mapped, initialised, registered.

Each step either goes on or ends the way with a state and a reason; nothing is raised to the
service, so that one plugin never stops the next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.device.platform import load_device_platform
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.kinds import Kind
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.events import EventLog
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.loading.binding import is_bound
from modular_tf.loading.device_loader import RefusedDevicePluginError
from modular_tf.loading.filesystem_tables import FilesystemTables, RefusedTables
from modular_tf.loading.loader import init_filesystems, map_library
from modular_tf.report import PluginRecord, Reason, State
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.configuration import Config
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.discovery.probe import Probe
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.filesystem.registry import FilesystemRegistry
    from modular_tf.native.library import Library

_log = EventLog("plugin")
_HOST_DEVICE = "libhost_device.so"


class PluginEntry:
    """What a service knows of one candidate. Used under the service's lock.

    Attributes:
        probe: What its bytes say.
        library: The mapped library, once it is.
        filesystems: Those it serves, by scheme.
        tables: Its accepted filesystem tables, by scheme, served or not.
        platform: Its device platform, once it is loaded.
    """

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.name = probe.candidate.name
        self.state = State.FOUND
        self.library: Library | None = None
        self.filesystems: dict[str, PluginFilesystem] = {}
        self.tables: dict[str, FilesystemTables] = {}
        self.platform: DevicePlatform | None = None
        self.reasons: list[Reason] = []
        self.warnings: list[Reason] = []
        self._undo: list[Callable[[], None]] = []
        if not probe.loadable:
            self.state = State.REJECTED
            self.reasons = [Reason.of_problem(p) for p in probe.problems if p.is_error]
        self.warnings = [Reason.of_problem(p) for p in probe.problems if not p.is_error]

    @property
    def path(self) -> str:
        """The file, as it was found."""
        return self.probe.candidate.path

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to the file that was probed."""
        for look in (os.stat, os.lstat):  # a link that leads nowhere is a candidate by itself
            with suppress(OSError, ValueError):
                found = look(self.path)
                return (found.st_dev, found.st_ino) == self.probe.candidate.identity
        return False

    def record(self) -> PluginRecord:
        """Return a snapshot."""
        return PluginRecord(
            name=self.name,
            path=self.path,
            source=self.probe.candidate.source.value,
            kinds=tuple(kind.value for kind in Kind if kind in self.probe.kinds),
            state=self.state,
            schemes=tuple(self.filesystems),
            device_types=(self.platform.device_type,) if self.platform else (),
            reasons=tuple(self.reasons),
            warnings=tuple(self.warnings),
        )

    def apply_policy(self, config: Config, veto: Callable[[Probe], str | None]) -> None:
        """Disable the plugin where configuration or a hook says so, before its code runs."""
        if self.state is not State.FOUND:
            return
        for rule_id, why in (
            ("LD-054", config.why_disabled(self.name)),
            ("LD-055", veto(self.probe)),
        ):
            if why is not None:
                reason = Reason.of_violation("policy", Violation(rule_id, why))
                self._end(State.DISABLED, reason)
                return

    @property
    def awaits_first_contact(self) -> bool:
        """Whether its code is new to this process, and that of a device, and not our own."""
        return (
            self.state is State.FOUND
            and Kind.DEVICE in self.probe.kinds
            and self.probe.candidate.source is not Source.BUNDLED
            and not is_bound(self.path)
        )

    def fail_first_contact(self, violation: Violation) -> None:
        """End the way before the library is opened here, for what it did in a child process."""
        state = State.FAILED if violation.rule_id == "LD-063" else State.QUARANTINED
        self._end(state, Reason.of_violation("first-contact", violation))

    def load(self, config: Config, schemes: FilesystemRegistry, devices: DeviceRegistry) -> None:
        """Go the rest of the way; does nothing where it was gone or is barred."""
        if self.state is not State.FOUND:
            return
        try:
            self.library = map_library(self.probe)
        except ModularTFError as error:
            self._end(State.FAILED, Reason.of_error("load", error))
            return
        if Kind.FILESYSTEM in self.probe.kinds:
            self._load_filesystems(self.library, config, schemes)
        if Kind.DEVICE in self.probe.kinds:
            self._load_devices(self.library, config, devices)
        self._conclude()

    # -- filesystems ----------------------------------------------------------------------------

    def _load_filesystems(
        self, library: Library, config: Config, registry: FilesystemRegistry
    ) -> None:
        try:
            offer = init_filesystems(library, plugin=self.name)
        except PluginError as error:
            self.reasons.append(Reason.of_error("init", error))
            return
        self._note_violations("init", offer.violations)
        for entry in offer.entries:
            if isinstance(entry, RefusedTables):
                self._note_violations("init", entry.violations, scheme=entry.scheme)
            else:
                self._note_violations("init", entry.warnings, scheme=entry.scheme)
                self.tables[entry.scheme] = entry
                self._serve_scheme(entry, config, registry)

    def _serve_scheme(
        self, tables: FilesystemTables, config: Config, registry: FilesystemRegistry
    ) -> None:
        """Initialise and register one scheme, unless somebody else has it."""
        if (taken := self._why_taken(tables.scheme, config, registry)) is not None:
            reason = Reason.of_violation("register", Violation("FS-018", taken))
            self.reasons.append(reason)
            return
        try:
            filesystem, warnings = open_filesystem(
                tables,
                plugin=self.name,
                path=self.path,
                bundled=self.probe.candidate.source is Source.BUNDLED,
            )
        except ModularTFError as error:
            message = f"scheme {tables.scheme!r}: {error.message}"
            self.reasons.append(Reason.of_violation("init", Violation("FS-019", message)))
            return
        self._note_violations("init", warnings)
        self._undo.append(registry.register(filesystem))
        self.filesystems[tables.scheme] = filesystem
        _log.info("scheme.registered", plugin=self.name, scheme=tables.scheme)

    def _why_taken(self, scheme: str, config: Config, registry: FilesystemRegistry) -> str | None:
        pinned = config.scheme_pins.get(scheme)
        if pinned is not None and pinned != self.name:
            return f"scheme {scheme!r} of {self.name} is pinned to {pinned!r} in {config.origin}"
        owner = registry.view.get(scheme)
        if owner is not None:
            return f"scheme {scheme!r} of {self.name} is taken by {owner.plugin}"
        return None

    # -- devices --------------------------------------------------------------------------------

    def _load_devices(self, library: Library, config: Config, registry: DeviceRegistry) -> None:
        ours = self.probe.candidate.source is Source.BUNDLED and library.name == _HOST_DEVICE
        priority = HOST_CPU_PRIORITY if ours else PLUGIN_PRIORITY
        try:
            platform = load_device_platform(
                library,
                plugin_name=self.name,
                priority=priority,
                memory=config.memory_of,
                copy_streams=config.copy_streams,
            )
        except RefusedDevicePluginError as error:
            self._note_violations("init", error.violations)
            if not self.reasons:
                self.reasons.append(Reason.of_error("init", error))
            return
        self._note_violations("init", platform.warnings)
        try:
            self._undo.append(registry.register(platform, plugin=self.name))
        except ModularTFError as error:
            self.reasons.append(Reason.of_error("register", error))
            platform.close()
            return
        self.platform = platform

    # -- the end --------------------------------------------------------------------------------

    def _note_violations(
        self, stage: str, violations: Iterable[Violation], scheme: str | None = None
    ) -> None:
        for violation in violations:
            reason = Reason.of_violation(stage, violation)
            if scheme is not None:
                message = f"scheme {scheme!r}: {reason.message}"
                reason = Reason(reason.stage, reason.rule, message, reason.remedy)
            (self.reasons if violation.is_error else self.warnings).append(reason)

    def _conclude(self) -> None:
        """Decide the state from what serves and what was refused."""
        if self.filesystems or self.platform is not None or not self.reasons:
            self._end(State.LOADED)
        elif all(reason.rule == "FS-018" for reason in self.reasons):
            self._end(State.SHADOWED)
        else:
            self._end(State.FAILED)

    def _end(self, state: State, *reasons: Reason) -> None:
        self.state = state
        self.reasons.extend(reasons)
        write = _log.info if state is State.LOADED else _log.warning
        write(
            "plugin.processed",
            plugin=self.name,
            path=self.path,
            outcome=state.value,
            reason=self.reasons[0].message if self.reasons else None,
            rule=self.reasons[0].rule if self.reasons else None,
        )

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in self.filesystems.values():
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Stop serving: files, filesystems, devices; return what went wrong."""
        errors = []
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        closers: list[Callable[[], None]] = [
            lambda fs=filesystem: fs.close(at_exit=at_exit)  # type: ignore[misc]
            for filesystem in self.filesystems.values()
        ]
        if self.platform is not None and not at_exit:
            closers.append(self.platform.close)
        for close in closers:
            try:
                close()
            except ModularTFError as error:
                errors.append(error)
        return errors
