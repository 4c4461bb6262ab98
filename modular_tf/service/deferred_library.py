"""The library of a plugin: registered by what is known of it, mapped at its first use."""

from __future__ import annotations

import weakref
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.factory import DeferredFactory
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.registry import DeferredFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.loading import OFFER_UNCHANGED
from modular_tf.service.lifetime import entry_point
from modular_tf.service.log_output import name_library
from modular_tf.service.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.first_contact.finding import Finding, Offer
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.kernel_loader import KernelOffer
    from modular_tf.native.library import Library
    from modular_tf.opening import OpenedPlugin
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin, PluginEntry
    from modular_tf.service.registrations import Registrations

    Mark = Callable[[Plugin], AbstractContextManager[object]]

_PATIENCE_AT_EXIT_S = 5.0
_NO_TABLES: Mapping[str, FilesystemTables] = MappingProxyType({})


class DeferredLibrary:
    """Registers what the library of a plugin offers, and maps it at the first use of that.

    Used under the service's lock, except that any thread may have it mapped, or close it.

    It registers what the library is known to offer, or loads it and registers what is there. Where
    that fails, for want of something or since another thread forked the process, what was
    registered before is left, and the next use does it again. What it came to becomes part of the
    plugin's record.
    """

    def __init__(
        self,
        entry: PluginEntry,
        config: Config,
        trust: TrustPolicy,
        registrations: Registrations,
        mark: Mark,
    ) -> None:
        self.registrations = registrations
        self._plugin = entry.plugin
        self._entry = weakref.ref(entry)  # which holds this
        self._config = config
        self._trust = trust
        self._mark = mark
        self._promised: Finding | None = None
        self._loaded: OpenedPlugin | None = None
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

    def _conclude(
        self,
        notes: Sequence[Violation],
        how: str,
        found: Finding | None = None,
        promised: Offer | None = None,
    ) -> None:
        """Record what is registered now, with the kernels that are `promised`."""
        platform, kernels = self.registrations.platform, self.registrations.kernel_place
        if promised is not None:
            counts = (promised.kernels, promised.ops)
        else:
            counts = (0, 0) if kernels is None else (len(kernels.kernels), len(kernels.definitions))
        outcome = Outcome(
            tuple(self.registrations.scheme_places),
            () if platform is None else (platform.device_type,),
            tuple(note for note in notes if note.is_error),
            tuple(note for note in notes if not note.is_error),
            found,
            *counts,
        )
        if (entry := self._entry()) is not None:  # else nobody asks for the plugin any more
            entry.change(lambda plugin: plugin.registered(outcome, how))

    # -- what is known of it, and not mapped ------------------------------------------------------

    def defer(self, finding: Finding, offer: Offer) -> None:
        """Register what it offered when it was tried; it is mapped at the first use."""
        plugin, offered = self._plugin.name, offer.platform
        filesystems = [
            DeferredFilesystem(scheme, plugin, partial(self._open_for, scheme))
            for scheme in offer.schemes
        ]
        platform = None
        if offered is not None:
            platform = DeferredFactory(
                device_type=offered.device_type,
                platform=offered.platform,
                priority=offered.priority,
                plugin=plugin,
                load=partial(self._open_for, None),
            )
        notes = finding.notes_of_loading if finding.notes else ()
        with self._lock:
            self._promised = finding
            refused = self._serve(filesystems, platform)
            if offer.kernels or offer.ops:
                self.registrations.promise_kernels(self.open_now)
            self._conclude([*notes, *refused], "to be mapped at its first use", promised=offer)

    def _open_for(self, scheme: str | None) -> None:
        """Map the library for a scheme, or None for devices; raise why it does not serve that."""
        self.open_now()
        if scheme is None:
            is_served = self.registrations.platform is not None
        else:
            is_served = scheme in self.registrations.filesystems
        failure = None if self._loaded is None else self._loaded.failure
        if failure is not None and not is_served:
            raise failure

    # -- mapped -----------------------------------------------------------------------------------

    def open_now(self) -> None:
        """Load the library and register what it offers, where that is not done. [any thread]

        What goes wrong in the plugin is among the reasons. What is not as it was when it was tried
        serves no longer.
        """
        if not (self._is_open or self._is_over):
            self._open()

    @entry_point
    def _open(self) -> None:
        with self._lock:
            if self._is_open or self._is_over:
                return
            if (loaded := self._loaded) is None:
                # What loads libraries is imported where one is loaded; a list loads none.
                from modular_tf.service.library_loading import load_library  # noqa: PLC0415

                self._announce()
                with self._mark(self._plugin):
                    conflict_of = self.registrations.conflict_of
                    loaded = load_library(self._plugin, self._config, self._trust, conflict_of)
                self._loaded = loaded
            try:
                self._register(loaded)
            finally:
                if self._is_over:  # it was closed meanwhile
                    self.registrations.close([], at_exit=False)

    def _register(self, loaded: OpenedPlugin) -> None:
        from modular_tf.service.library_loading import finding_of  # noqa: PLC0415

        refused = self._serve(loaded.filesystems, loaded.platform)
        notes = self._serve_kernels(loaded.kernels)
        self.registrations.give_back_deferred()
        finding = finding_of(loaded)
        notes = [*loaded.notes, *refused, *notes, *self._differences(finding)]
        self._conclude(notes, "mapped", finding)
        loaded.hand_over()  # what could not be registered shall not live on here
        self._is_open = True

    def _announce(self) -> None:
        """Report the plugin's name and path to log and native core, before its code runs.

        Calls in which the process ends are reported, and leave a note for the next one.
        """
        from modular_tf.native.plugin_names import name_plugin  # noqa: PLC0415  (not for listing)

        plugin = self._plugin
        sha256, note = None if plugin.is_bundled else plugin.sha256, ""
        if self._config.report_ended_calls:
            from modular_tf.service.storage.notes import Notes, note_of  # noqa: PLC0415  (likewise)

            Notes.of_process().report_calls(leave_notes=sha256 is not None)
            note = "" if sha256 is None else note_of(plugin.name, plugin.path, sha256)
        name_library(plugin.path, plugin.name)
        name_plugin(plugin.name, plugin.path, note)

    def _serve(
        self,
        filesystems: Iterable[PluginFilesystem | DeferredFilesystem],
        platform: DevicePlatform | DeferredFactory | None,
    ) -> list[Violation]:
        """Register filesystems and a platform; return why one cannot be, and was closed."""
        reasons = []
        for filesystem in filesystems:
            refused = self.registrations.add_filesystem(filesystem)
            if refused is not None:
                reasons.append(refused.at("register"))
            elif not isinstance(filesystem, DeferredFilesystem):
                self._plugin.log.info("scheme.registered", scheme=filesystem.scheme)
        if platform is not None:
            try:
                self.registrations.add_platform(platform)
            except ModularTFError as error:
                reasons.append(Violation.of_error(error, "register"))
        return reasons

    def _serve_kernels(self, offer: KernelOffer | None) -> list[Violation]:
        """Register kernels; return what is wrong with single ones, or why they cannot be."""
        if offer is None:
            return []
        from modular_tf.kernel.registry import plugin_kernels  # noqa: PLC0415  (few have any)

        kernels = plugin_kernels(offer, self._plugin.name)
        if kernels is None:
            return []
        try:
            return [note.at("register") for note in self.registrations.add_kernels(kernels)]
        except ModularTFError as error:
            return [Violation.of_error(error, "register")]

    def _differences(self, found: Finding | None) -> Iterator[Violation]:
        """Report any difference between what was promised and what there is."""
        promised = self._promised
        if promised is not None and found is not None and found.offer != promised.offer:
            message = f"expected {_described(promised.offer)}, found {_described(found.offer)}"
            self._plugin.log.warning("plugin.differs", message=message)
            yield Violation(OFFER_UNCHANGED, message, "register")

    # -- the end -----------------------------------------------------------------------------------

    def forget(self) -> None:
        """Serve nothing new from now on, and release what was opened."""
        self._is_over = True  # without the lock, which a plugin that hangs in its init would hold
        self.registrations.forget()
        self._loaded = None

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Stop serving: files, filesystems, devices; add what went wrong to `failures`."""
        self._is_over = True  # without the lock, as above
        if at_exit and self._lock.acquire(timeout=_PATIENCE_AT_EXIT_S):
            self._lock.release()  # an init that an interrupted use has left behind has ended
        self.registrations.close(failures, at_exit=at_exit)


def _described(offer: Offer | None) -> str:
    if offer is None:
        return "nothing"
    platform = offer.platform
    devices = [] if platform is None else [f"{platform.device_type} ({platform.platform})"]
    kernels = [f"{offer.kernels} kernels"] if offer.kernels else []
    found = [f"scheme {scheme!r}" for scheme in offer.schemes] + devices + kernels
    return ", ".join(found) or "nothing"
