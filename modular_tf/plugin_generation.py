"""One library of a plugin: mapped or about to be, and what of it is registered.

A plugin has one generation at a time, and another one when its file is replaced while the service
runs; the old one then serves what is open, and nothing new.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.device.deferred import DeferredFactory
from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.discovery.kinds import Kind
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.events import EventLog
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.first_contact.finding import Finding, Note, Offer, PlatformOffer
from modular_tf.log_output.plugin_names import name_library
from modular_tf.report import Reason, State
from modular_tf.retired_generation import RetiredGeneration, close_served
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from modular_tf.configuration import Config
    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.filesystem.registry import FilesystemRegistry
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library

_log = EventLog("plugin")
_HOST_DEVICE = "libhost_device.so"
_DEVICES = object()  # stands among the schemes, for what undoes their registrations


class PluginFile(NamedTuple):
    """What is mapped for a plugin.

    Attributes:
        plugin: The plugin's name for users.
        path: Its library.
        kinds: What it brings.
        companions: Libraries that it brings along, those that others need first.
        absent: Functions that it asks for and nobody has.
        bundled: Whether it comes with this package.
        sha256: Of its bytes, in hexadecimal digits, None where they could not be read.
        checked: The files as they were when they were found to be trustworthy.
        sealed: Whether to map copies that nobody can write to.
    """

    plugin: str
    path: str
    kinds: frozenset[Kind]
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    bundled: bool = False
    sha256: str | None = None
    checked: tuple[SeenFile, ...] | None = None
    sealed: bool = False


class Registries(NamedTuple):
    """Where plugins of one service register."""

    schemes: FilesystemRegistry
    devices: DeviceRegistry


def unmarked(file: PluginFile) -> AbstractContextManager[object]:
    """Surround the loading of a plugin with nothing."""
    del file
    return nullcontext()


class Generation:
    """What one library of a plugin registers in one service.

    Used under the service's lock, except that any thread may have it opened.

    Attributes:
        file: What is mapped.
        library: The mapped library, None while it is not.
        tables: Its accepted filesystem tables, by scheme, served or not.
        filesystems: What it registered, by scheme.
        platform: What it registered for its devices.
        reasons: Why it, or a part of it, does not serve.
        warnings: Rules that it broke without being refused.

    Args:
        file: As above.
        config: What the user decided.
        registries: Where it registers.
        mark: Gives what surrounds the time in which its code begins to run in this process.
        predecessor: Whose place it takes, by `take_over`; it registers nothing before.
    """

    def __init__(
        self,
        file: PluginFile,
        config: Config,
        registries: Registries,
        mark: Callable[[PluginFile], AbstractContextManager[object]] = unmarked,
        predecessor: Generation | None = None,
    ) -> None:
        self.file = file
        self.library: Library | None = None
        self.tables: dict[str, FilesystemTables] = {}
        self.filesystems: dict[str, PluginFilesystem | DeferredFilesystem] = {}
        self.platform: DevicePlatform | DeferredFactory | None = None
        self.reasons: list[Reason] = []
        self.warnings: list[Reason] = []
        self._config = config
        self._registries = registries
        self._mark = mark
        self._predecessor = predecessor
        self._undo: dict[object, Callable[[], None]] = {}
        self._promised: Finding | None = None
        self._failure: ModularTFError | None = None
        self._failed: set[str] = set()
        self._offered: PlatformOffer | None = None
        self._lent: list[Device] = []
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """What the plugin is by what serves and what was refused."""
        if self.filesystems or self.platform is not None or not self.reasons:
            return State.LOADED
        if all(reason.rule == "FS-018" for reason in self.reasons):
            return State.SHADOWED
        return State.FAILED

    @property
    def device_types(self) -> tuple[str, ...]:
        """The device types that it registered."""
        return () if self.platform is None else (self.platform.device_type,)

    # -- what is known of it, and not mapped ------------------------------------------------------

    def defer(self, finding: Finding, offer: Offer) -> None:
        """Register what it offered when it was tried; it is mapped when somebody wants it."""
        self._promised = finding
        for note in finding.notes_of_loading:
            reason = Reason.of_rule(note.stage, note.rule, note.message)
            (self.reasons if note.is_error else self.warnings).append(reason)
        for scheme in offer.schemes:
            if not self._is_taken(scheme):
                open_it = partial(self._open_scheme, scheme)
                deferred = DeferredFilesystem(scheme, self.file.plugin, open_it)
                self._register_scheme(deferred)
        if offer.platform is not None:
            self._defer_devices(offer.platform)

    def _defer_devices(self, offer: PlatformOffer) -> None:
        deferred = DeferredFactory(
            device_type=offer.device_type,
            platform=offer.platform,
            priority=offer.priority,
            plugin=self.file.plugin,
            load_now=self._open_devices,
        )
        if self._register_factory(deferred):
            self.platform = deferred

    def _open_scheme(self, scheme: str) -> None:
        self.open_now()
        if self._failure is not None and scheme not in self.filesystems:
            raise self._failure

    def _open_devices(self) -> None:
        self.open_now()
        if self._failure is not None and self.platform is None:
            raise self._failure

    def open_now(self) -> None:
        """Map what is deferred; does nothing where that is done. [any thread]

        What is not as it was when it was tried serves no longer.
        """
        with self._lock:
            promised, self._promised = self._promised, None
            if promised is not None:
                self.reasons.clear()
                self.warnings.clear()
                self.load()
                self._compare(promised)

    def _compare(self, promised: Finding) -> None:
        """Take back what was promised and is not there, and tell of any difference."""
        for scheme in [s for s, f in self.filesystems.items() if isinstance(f, DeferredFilesystem)]:
            del self.filesystems[scheme]
            self._undo.pop(scheme)()
        if isinstance(self.platform, DeferredFactory):
            self.platform = None
            self._undo.pop(_DEVICES)()
        found = self.finding()
        if found.offer != promised.offer:
            message = f"expected {_described(promised.offer)}, found {_described(found.offer)}"
            self._note("register", [Violation("LD-095", message)])
            _log.warning("plugin.differs", plugin=self.file.plugin, message=message)

    def finding(self) -> Finding:
        """Return what trying this library would find, once it is mapped."""
        notes = [
            Note("load" if reason.stage == "load" else "init", reason.rule, reason.message)
            for reason in (*self.reasons, *self.warnings)
            if reason.stage in {"load", "init"}
        ]
        schemes = tuple(scheme for scheme in self.tables if scheme not in self._failed)
        return Finding(None, Offer(schemes, self._offered), tuple(notes))

    # -- mapped -----------------------------------------------------------------------------------

    def load(self) -> None:
        """Map it, run its init functions and register what they offer; raises nothing."""
        # The native core, which many processes that only list plugins never need.
        from modular_tf.loading.loader import map_file  # noqa: PLC0415

        name_library(self.file.path, self.file.plugin)
        with self._lock, self._mark(self.file):
            try:
                self.library = map_file(
                    self.file.path,
                    self.file.companions,
                    self.file.absent,
                    checked=self.file.checked,
                    sealed=self.file.sealed,
                )
            except ModularTFError as error:
                self.reasons.append(Reason.of_error("load", error))
                self._failure = error
                return
            if Kind.FILESYSTEM in self.file.kinds:
                self._load_filesystems(self.library)
            if Kind.DEVICE in self.file.kinds:
                self._load_devices(self.library)

    def _load_filesystems(self, library: Library) -> None:
        from modular_tf.loading.filesystem_tables import RefusedTables  # noqa: PLC0415
        from modular_tf.loading.loader import init_filesystems  # noqa: PLC0415

        try:
            offer = init_filesystems(library, plugin=self.file.plugin)
        except PluginError as error:
            self.reasons.append(Reason.of_error("init", error))
            return
        self._note("init", offer.violations)
        for entry in offer.entries:
            if isinstance(entry, RefusedTables):
                self._note("init", entry.violations, scheme=entry.scheme)
            else:
                self._note("init", entry.warnings, scheme=entry.scheme)
                self.tables[entry.scheme] = entry
                self._serve_scheme(entry)

    def _serve_scheme(self, tables: FilesystemTables) -> None:
        """Initialise and register one scheme, unless somebody else has it."""
        from modular_tf.filesystem.opening import open_filesystem  # noqa: PLC0415

        scheme = tables.scheme
        deferred = self.filesystems.get(scheme)
        if deferred is None and self._is_taken(scheme):
            return
        try:
            filesystem, warnings = open_filesystem(
                tables,
                plugin=self.file.plugin,
                path=self.file.path,
                bundled=self.file.bundled,
            )
        except ModularTFError as error:
            message = f"scheme {scheme!r}: {error.message}"
            self._note("init", [Violation("FS-019", message)])
            self._failed.add(scheme)
            self._failure = self._failure or error
            return
        self._note("init", warnings)
        if isinstance(deferred, DeferredFilesystem):
            self._registries.schemes.fulfil(deferred, filesystem)
            self.filesystems[scheme] = filesystem
        else:
            self._register_scheme(filesystem)
        _log.info("scheme.registered", plugin=self.file.plugin, scheme=scheme)

    def _register_scheme(self, filesystem: PluginFilesystem | DeferredFilesystem) -> None:
        scheme = filesystem.scheme
        if self._predecessor is None:
            self._undo[scheme] = self._registries.schemes.register(filesystem)
        self.filesystems[scheme] = filesystem

    def _is_taken(self, scheme: str) -> bool:
        """Tell whether somebody else has a scheme, and note who."""
        plugin, config = self.file.plugin, self._config
        pinned = config.scheme_pins.get(scheme, plugin)
        inherits = self._predecessor is not None and scheme in self._predecessor.filesystems
        owner = None if inherits else self._registries.schemes.view.get(scheme)
        if pinned != plugin:
            why = f"scheme {scheme!r} of {plugin} is pinned to {pinned!r} in {config.origin}"
        elif owner is not None:
            why = f"scheme {scheme!r} of {plugin} is taken by {owner.plugin}"
        else:
            return False
        self._note("register", [Violation("FS-018", why)])
        return True

    def _load_devices(self, library: Library) -> None:
        from modular_tf.device.platform import load_device_platform  # noqa: PLC0415
        from modular_tf.loading.device_loader import RefusedDevicePluginError  # noqa: PLC0415

        ours = self.file.bundled and library.name == _HOST_DEVICE
        try:
            platform = load_device_platform(
                library,
                plugin_name=self.file.plugin,
                priority=HOST_CPU_PRIORITY if ours else PLUGIN_PRIORITY,
                memory=self._config.memory_of,
                copy_streams=self._config.copy_streams,
            )
        except RefusedDevicePluginError as error:
            self._note("init", error.violations)
            if not self.reasons:
                self.reasons.append(Reason.of_error("init", error))
            self._failure = self._failure or error
            return
        self._offered = PlatformOffer(platform.device_type, platform.platform, platform.priority)
        self._note("init", platform.warnings)
        self._register_devices(platform)

    def _register_devices(self, platform: DevicePlatform) -> None:
        deferred = self.platform
        if isinstance(deferred, DeferredFactory) and _same_rank(deferred, platform):
            self._registries.devices.fulfil(deferred, platform)
            self.platform = platform
            return
        if deferred is not None:
            self._undo.pop(_DEVICES)()
            self.platform = None
        if self._register_factory(platform):
            self.platform = platform
        else:
            platform.close()

    def _register_factory(self, factory: DevicePlatform | DeferredFactory) -> bool:
        plugin, old = self.file.plugin, self._predecessor
        try:
            if old is not None:  # it takes a place later
                instead_of = old.platform
                self._registries.devices.check_room(factory, plugin=plugin, instead_of=instead_of)
            else:
                self._undo[_DEVICES] = self._registries.devices.register(factory, plugin=plugin)
        except ModularTFError as error:
            self.reasons.append(Reason.of_error("register", error))
            return False
        return True

    def _note(self, stage: str, violations: Iterable[Violation], scheme: str | None = None) -> None:
        for violation in violations:
            where = "" if scheme is None else f"scheme {scheme!r}: "
            reason = Reason.of_rule(stage, violation.rule_id, where + violation.message)
            (self.reasons if violation.is_error else self.warnings).append(reason)

    # -- in the place of another ------------------------------------------------------------------

    def take_over(self) -> None:
        """Serve what the predecessor serves, in one step, and what it did not; it serves no longer.

        Does nothing without a predecessor.
        """
        old, self._predecessor = self._predecessor, None
        if old is None:
            return
        with self._lock, old._lock:  # noqa: SLF001  (of this class, here and below)
            old._promised = None  # noqa: SLF001
            for scheme, filesystem in list(self.filesystems.items()):
                if (undo := old._undo.pop(scheme, None)) is not None:  # noqa: SLF001
                    self._registries.schemes.fulfil(old.filesystems[scheme], filesystem)
                    self._undo[scheme] = undo
                else:
                    self._register_scheme(filesystem)
            self._take_devices_over(old)
            old.withdraw()

    def _take_devices_over(self, old: Generation) -> None:
        platform = self.platform
        if platform is not None and not self._succeed_factory(old, platform):
            self.platform = None
            if not isinstance(platform, DeferredFactory):
                platform.close()

    def _succeed_factory(self, old: Generation, platform: DevicePlatform | DeferredFactory) -> bool:
        if old.platform is None or _DEVICES not in old._undo:
            return self._register_factory(platform)
        try:
            old._lent += self._registries.devices.fulfil(old.platform, platform)
        except ModularTFError as error:
            self.reasons.append(Reason.of_error("register", error))
            return False
        self._undo[_DEVICES] = old._undo.pop(_DEVICES)
        return True

    # -- the end ----------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._lock = threading.RLock()
        for filesystem in self.filesystems.values():
            if not isinstance(filesystem, DeferredFilesystem):
                with suppress(ModularTFError):
                    filesystem.after_fork_in_child()

    def withdraw(self) -> None:
        """Serve nothing new from now on; what is open goes on."""
        self._promised = None
        for undo in reversed(list(self._undo.values())):
            undo()
        self._undo.clear()

    def retire(self) -> RetiredGeneration:
        """Serve nothing new from now on, and give what is left to those who hold something."""
        with self._lock:
            platform = None if isinstance(self.platform, DeferredFactory) else self.platform
            if platform is not None:
                self._lent += self._registries.devices.listed_devices(platform)
            self.withdraw()
            opened = [f for f in self.filesystems.values() if not isinstance(f, DeferredFilesystem)]
            retired = RetiredGeneration(
                self.file.plugin, self.file.path, opened, platform, self._lent
            )
            self.filesystems, self.tables, self.platform, self._lent = {}, {}, None, []
        return retired

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Stop serving: files, filesystems, devices; return what went wrong."""
        self.withdraw()
        filesystems = (
            fs for fs in self.filesystems.values() if not isinstance(fs, DeferredFilesystem)
        )
        platform = None if isinstance(self.platform, DeferredFactory) else self.platform
        return close_served(filesystems, platform, at_exit=at_exit)


def _same_rank(deferred: DeferredFactory, platform: DevicePlatform) -> bool:
    return (deferred.device_type, deferred.platform, deferred.priority) == (
        platform.device_type,
        platform.platform,
        platform.priority,
    )


def _described(offer: Offer | None) -> str:
    if offer is None:
        return "nothing"
    platform = offer.platform
    devices = [] if platform is None else [f"{platform.device_type} ({platform.platform})"]
    return ", ".join([f"scheme {scheme!r}" for scheme in offer.schemes] + devices) or "nothing"
