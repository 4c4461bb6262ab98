"""One library of a plugin in one service: mapped, or to be mapped when somebody wants it.

A plugin has one generation at a time, and another one when its file is replaced while the service
runs; the old one then serves what is open, and nothing new.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.device.deferred import DeferredFactory
from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.discovery.kinds import Kind
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.events import EventLog
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.first_contact.finding import Finding, Note, Offer, PlatformOffer
from modular_tf.fork_lock import ForkLock
from modular_tf.log_output.plugin_names import name_library
from modular_tf.plugin_file import PluginFile, unmarked
from modular_tf.registrations import Registrations
from modular_tf.report import Reason, State
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from modular_tf.configuration import Config
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.filesystem.registry import Registered
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.registries import Registries
    from modular_tf.retired_generation import RetiredGeneration

_log = EventLog("plugin")
_HOST_DEVICE = "libhost_device.so"


class Generation:
    """What one library of a plugin brings, and whether it serves.

    Used under the service's lock, except that any thread may have it opened.

    Attributes:
        file: What is mapped.
        library: The mapped library, None while it is not.
        tables: Its accepted filesystem tables, by scheme, served or not.
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
        self.reasons: list[Reason] = []
        self.warnings: list[Reason] = []
        self._config = config
        self._mark = mark
        self._predecessor = predecessor
        places = None if predecessor is None else predecessor._registered  # noqa: SLF001
        self._registered: Registrations = Registrations(file, config, registries, places)
        self._promised: Finding | None = None
        self._failure: ModularTFError | None = None
        self._failed: set[str] = set()
        self._offered: PlatformOffer | None = None
        self._lock = ForkLock()

    @property
    def filesystems(self) -> Mapping[str, Registered]:
        """What it registered, by scheme."""
        return self._registered.filesystems

    @property
    def platform(self) -> DevicePlatform | DeferredFactory | None:
        """What it registered for its devices."""
        return self._registered.platform

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
                self._registered.add_filesystem(deferred)
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
        self._register_devices(deferred)

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
                self._registered.give_back_deferred()
                self._compare(promised)

    def _compare(self, promised: Finding) -> None:
        """Tell of any difference between what was promised and what there is."""
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
                    trust=self.file.trust,
                    tell=partial(self._note, "load"),
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
        if scheme not in self.filesystems and self._is_taken(scheme):
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
        self._registered.add_filesystem(filesystem)
        _log.info("scheme.registered", plugin=self.file.plugin, scheme=scheme)

    def _is_taken(self, scheme: str) -> bool:
        """Tell whether somebody else has a scheme, and note who."""
        why = self._registered.why_taken(scheme)
        if why is not None:
            self._note("register", [Violation("FS-018", why)])
        return why is not None

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

    def _register_devices(self, platform: DevicePlatform | DeferredFactory) -> None:
        try:
            self._registered.add_platform(platform)
        except ModularTFError as error:
            self.reasons.append(Reason.of_error("register", error))

    def _note(self, stage: str, violations: Iterable[Violation], scheme: str | None = None) -> None:
        for violation in violations:
            where = "" if scheme is None else f"scheme {scheme!r}: "
            reason = Reason.of_rule(stage, violation.rule_id, where + violation.message)
            (self.reasons if violation.is_error else self.warnings).append(reason)

    # -- in the place of another, and the end -----------------------------------------------------

    def give_up_taken(self) -> None:
        """Give up what somebody else has got since it was loaded, before it takes over."""
        with self._lock:
            self.reasons += self._registered.give_up_taken()

    def take_over(self) -> None:
        """Serve what the predecessor serves, in one step, and what it did not; it serves no longer.

        Does nothing without a predecessor.
        """
        old, self._predecessor = self._predecessor, None
        if old is None:
            return
        with self._lock, old._lock:  # noqa: SLF001  (of this class, as in the next line)
            old._promised = None  # noqa: SLF001
            self._registered.take_over()

    def retire(self) -> RetiredGeneration:
        """Serve nothing new from now on, and give what is left to those who hold something."""
        with self._lock:
            self._promised = None
            self.tables = {}
            return self._registered.retire()

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Stop serving: files, filesystems, devices; return what went wrong."""
        self._promised = None  # without the lock, which a plugin that hangs in its init would hold
        return self._registered.close(at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._registered.after_fork_in_child()


def _described(offer: Offer | None) -> str:
    if offer is None:
        return "nothing"
    platform = offer.platform
    devices = [] if platform is None else [f"{platform.device_type} ({platform.platform})"]
    return ", ".join([f"scheme {scheme!r}" for scheme in offer.schemes] + devices) or "nothing"
