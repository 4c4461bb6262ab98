"""A library of a plugin on its way from what is known of it to what it serves."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.deferred import DeferredFactory
from modular_tf.errors import ModularTFError
from modular_tf.events import EventLog
from modular_tf.events.delivery import delivers_at_end
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_FREE
from modular_tf.rules.mapping import OFFER_UNCHANGED
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.loaded_library import load_library
from modular_tf.service.log_output.plugin_names import name_library
from modular_tf.service.offers import Registrations
from modular_tf.service.plugin_file import PluginFile, unmarked
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.filesystem.registry import Registered
    from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.service.configuration import Config
    from modular_tf.service.loaded_library import LoadedLibrary
    from modular_tf.service.registries import Registries
    from modular_tf.service.reload.retired_library import RetiredGeneration

_log = EventLog("plugin")
_NO_TABLES: Mapping[str, FilesystemTables] = MappingProxyType({})


class Generation:
    """What one library of a plugin brings, and whether it serves.

    Used under the service's lock, except that any thread may have it opened, or close it.

    It registers what the library is known to offer, or loads it and registers what is there. Each
    of the two is done as a whole, or as if it had not begun: what interrupts it, be it an
    exception of a signal handler or a fork by another thread, leaves what was registered before,
    and the next use does it again. So does a signal handler that comes in the middle of it and
    needs what the library serves; what was interrupted by it then keeps the handler's.

    Attributes:
        file: What is mapped.
        is_settled: Whether it has registered what it offers, mapped or not.

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
        self.is_settled = False
        self._config = config
        self._mark = mark
        places = None if predecessor is None else predecessor._registered  # noqa: SLF001
        self._registered: Registrations = Registrations(file, config, registries, places)
        self._promised: Finding | None = None
        self._loaded: LoadedLibrary | None = None
        self._reasons: tuple[Violation, ...] = ()
        self._warnings: tuple[Violation, ...] = ()
        self._is_open = False
        self._is_over = False
        self._lock = ForkLock()

    @property
    def library(self) -> Library | None:
        """The mapped library, None while it is not."""
        return None if self._loaded is None else self._loaded.library

    @property
    def tables(self) -> Mapping[str, FilesystemTables]:
        """Its accepted filesystem tables, by scheme, served or not."""
        return _NO_TABLES if self._loaded is None else self._loaded.tables

    @property
    def reasons(self) -> tuple[Violation, ...]:
        """Why it, or a part of it, does not serve."""
        return self._reasons

    @property
    def warnings(self) -> tuple[Violation, ...]:
        """Rules that it broke without being refused."""
        return self._warnings

    @property
    def finding(self) -> Finding | None:
        """What trying it would have found; None while it was not loaded."""
        return None if self._loaded is None else self._loaded.finding

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
        if not self.is_settled:
            return State.FOUND
        if self.filesystems or self.platform is not None or not self.reasons:
            return State.LOADED
        if all(reason.rule == SCHEME_FREE for reason in self.reasons):
            return State.SHADOWED
        return State.FAILED

    @property
    def device_types(self) -> tuple[str, ...]:
        """The device types that it registered."""
        return () if self.platform is None else (self.platform.device_type,)

    @property
    def could_serve(self) -> bool:
        """Whether it may have a scheme now that somebody else had when it was registered."""
        finding = self.finding or self._promised
        offer = None if finding is None else finding.offer
        missing = set() if offer is None else {*offer.schemes} - self.filesystems.keys()
        return any(self._registered.why_taken(scheme) is None for scheme in missing)

    # -- what is known of it, and not mapped ------------------------------------------------------

    def defer(self, finding: Finding, offer: Offer) -> None:
        """Register what it offered when it was tried; it is mapped when somebody wants it."""
        notes = finding.notes_of_loading
        with self._lock:
            self._promised = finding
            deferred = self._deferred_filesystems(offer), self._deferred_platform(offer)
            refused = list(self._serve(*deferred))
            reasons = [*(note for note in notes if note.is_error), *refused]
            warnings = [note for note in notes if not note.is_error]
            if not self.is_settled:  # else by a signal handler in the middle of that
                self._reasons, self._warnings = (*reasons,), (*warnings,)
                self.is_settled = True

    def _deferred_filesystems(self, offer: Offer) -> list[DeferredFilesystem]:
        plugin = self.file.plugin
        return [
            DeferredFilesystem(scheme, plugin, partial(self._open_scheme, scheme))
            for scheme in offer.schemes
        ]

    def _deferred_platform(self, offer: Offer) -> DeferredFactory | None:
        offered: PlatformOffer | None = offer.platform
        if offered is None:
            return None
        return DeferredFactory(
            device_type=offered.device_type,
            platform=offered.platform,
            priority=offered.priority,
            plugin=self.file.plugin,
            load_now=self._open_devices,
        )

    def _open_scheme(self, scheme: str) -> None:
        self.open_now()
        self._raise_unless(scheme in self.filesystems)

    def _open_devices(self) -> None:
        self.open_now()
        self._raise_unless(self.platform is not None)

    def _raise_unless(self, is_there: bool) -> None:  # noqa: FBT001
        failure = None if self._loaded is None else self._loaded.failure
        if failure is not None and not is_there:
            raise failure

    # -- mapped -----------------------------------------------------------------------------------

    @delivers_at_end
    def open_now(self) -> None:
        """Load the library and register what it offers, where that is not done. [any thread]

        What goes wrong in the plugin is among the reasons. What is not as it was when it was tried
        serves no longer.

        Raises:
            ShortageError: It cannot be loaded now; the next use tries again.
        """
        if self._is_open or self._is_over:  # no wait for whoever holds the lock to find that out
            return
        with self._lock:
            if self._is_open or self._is_over:
                return
            loaded = self._load()
            if self._is_open:  # by a signal handler in the middle of that
                return
            try:
                refused = tuple(self._serve(loaded.filesystems, loaded.platform))
                self._registered.give_back_deferred()
                differences = tuple(self._differences(loaded.finding))
                self._reasons = loaded.reasons + refused
                self._warnings = loaded.warnings + differences
                # What could not be registered shall not live on here.
                self._loaded = loaded._replace(filesystems=(), platform=None)
                self._is_open = self.is_settled = True
            finally:
                if self._is_over:  # it was closed meanwhile, and no next use finishes this
                    self._registered.close([], at_exit=False)

    def _load(self) -> LoadedLibrary:
        if self._loaded is not None:
            return self._loaded
        try:
            self._name()
        except OSError as error:  # also of an import
            raise_shortage(error)
            raise
        with self._mark(self.file):
            loaded = load_library(self.file, self._config, self._registered.why_taken)
        if self._loaded is None:
            self._loaded = loaded
        else:  # a signal handler came in the middle
            loaded.close()
        return self._loaded

    def _name(self) -> None:
        """Make known whose library it is, before its code runs."""
        name_library(self.file.path, self.file.plugin)
        from modular_tf.native.plugin_names import name_plugin  # noqa: PLC0415  (not for listing)

        name_plugin(self.file.plugin, self.file.path, self._record())

    def _record(self) -> str:
        """Have it told of calls in which the process ends; return what the note begins with."""
        if not self._config.tell_ended_calls:
            return ""
        from modular_tf.service.kept.ended_calls import record_of, report_ended_calls  # noqa: PLC0415

        file = self.file
        sha256 = None if file.bundled else file.sha256
        report_ended_calls(leave_notes=sha256 is not None)
        return "" if sha256 is None else record_of(file.plugin, file.path, sha256)

    def _serve(
        self,
        filesystems: Iterable[PluginFilesystem | DeferredFilesystem],
        platform: DevicePlatform | DeferredFactory | None,
    ) -> Iterator[Violation]:
        """Register filesystems and a platform; yield why one cannot be, and was closed."""
        for filesystem in filesystems:
            try:
                self._registered.add_filesystem(filesystem)
            except ModularTFError as error:
                yield Violation.of_error(error, "register")
            else:
                if not isinstance(filesystem, DeferredFilesystem):
                    plugin, scheme = self.file.plugin, filesystem.scheme
                    _log.info("scheme.registered", plugin=plugin, scheme=scheme)
        if platform is not None:
            try:
                self._registered.add_platform(platform)
            except ModularTFError as error:
                yield Violation.of_error(error, "register")

    def _differences(self, found: Finding) -> Iterator[Violation]:
        """Tell of any difference between what was promised and what there is."""
        promised = self._promised
        if promised is not None and found.offer != promised.offer:
            message = f"expected {_described(promised.offer)}, found {_described(found.offer)}"
            _log.warning("plugin.differs", plugin=self.file.plugin, message=message)
            yield Violation(OFFER_UNCHANGED, message, "register")

    # -- in the place of another, and the end -----------------------------------------------------

    def give_up_taken(self) -> None:
        """Give up what somebody else has got since it was loaded, before it takes over."""
        with self._lock:
            self._reasons = (*self._reasons, *self._registered.give_up_taken())

    def take_over(self) -> None:
        """Serve what the predecessor serves, in one step, and what it did not; it serves no longer.

        Does nothing without a predecessor.
        """
        with self._lock:
            self._registered.take_over()

    def retired(self) -> RetiredGeneration:
        """Return what will be left for those who hold something of it, once it is forgotten."""
        return self._registered.retired()

    def forget(self) -> None:
        """Serve nothing new from now on, and let go of what was opened."""
        self._is_over = True  # without the lock, which a plugin that hangs in its init would hold
        self._registered.forget()
        self._loaded = None

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Stop serving: files, filesystems, devices; add what went wrong to `failures`."""
        self._is_over = True  # without the lock, as above
        self._registered.close(failures, at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._registered.after_fork_in_child()


def _described(offer: Offer | None) -> str:
    if offer is None:
        return "nothing"
    platform = offer.platform
    devices = [] if platform is None else [f"{platform.device_type} ({platform.platform})"]
    return ", ".join([f"scheme {scheme!r}" for scheme in offer.schemes] + devices) or "nothing"
