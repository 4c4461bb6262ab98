"""What became of loading a library, as one value that exists when loading has come to its end.

Nobody sees a part of it: not who interrupts the loading, nor another thread, a signal handler or
a forked child in the middle of it.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.discovery.kinds import Kind
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer, noted
from modular_tf.processes.plugin_output import output_to_standard_error
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_INIT_SUCCEEDS
from modular_tf.rules.shortage import ShortageError, raise_shortage
from modular_tf.service.outcome import Outcome
from modular_tf.service.registrations import close_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.kernel.registry import PluginKernels
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

_HOST_DEVICE = "libhost_device.so"


class LoadResult(NamedTuple):
    """A library that was loaded, or why it, or a part of it, could not be.

    Attributes:
        library: The mapped library, None where it could not be mapped.
        tables: Its accepted filesystem tables, by scheme, served or not.
        filesystems: Those that were opened.
        platform: Its devices, None for none.
        kernels: Its kernels and definitions of operations, None for none.
        outcome: What is wrong with it, and what trying it would have found; nothing is registered.
        failure: The first error, None where nothing failed.
    """

    library: Library | None
    tables: Mapping[str, FilesystemTables]
    filesystems: tuple[PluginFilesystem, ...]
    platform: DevicePlatform | None
    kernels: PluginKernels | None
    outcome: Outcome
    failure: ModularTFError | None

    def close(self) -> None:
        """Close what was opened, which nobody got."""
        close_served(self.filesystems, self.platform, [], at_exit=False)


def load_library(
    plugin: Plugin, config: Config, trust: TrustPolicy, why_taken: Callable[[str], Violation | None]
) -> LoadResult:
    """Map a library and run its init functions; what goes wrong in it is part of the result.

    Args:
        plugin: Whose library it is.
        config: What the user decided.
        trust: What is decided about trust, for what is mapped with it beside its files.
        why_taken: Tells why it cannot have a scheme, None where it can; asked before the scheme is
            initialised.

    Raises:
        ShortageError: It cannot be loaded now, for what this process has too little of.
    """
    loading = _Loading(plugin, config, trust, why_taken)
    try:
        with nullcontext() if plugin.is_bundled else output_to_standard_error():
            return loading.run()
    except BaseException as error:  # an interrupt or a shortage: nobody gets what was opened
        close_served(loading.filesystems, loading.platform, [], at_exit=False)
        raise_shortage(error)
        raise


class _Loading:
    """The loading of one library, as far as it has come."""

    def __init__(
        self,
        plugin: Plugin,
        config: Config,
        trust: TrustPolicy,
        why_taken: Callable[[str], Violation | None],
    ) -> None:
        self.filesystems: list[PluginFilesystem] = []
        self.platform: DevicePlatform | None = None
        self.kernels: PluginKernels | None = None
        self._plugin = plugin
        self._config = config
        self._trust = trust
        self._why_taken = why_taken
        self._library: Library | None = None
        self._tables: dict[str, FilesystemTables] = {}
        self._failed: set[str] = set()
        self._failure: ModularTFError | None = None
        self._reasons: list[Violation] = []
        self._warnings: list[Violation] = []

    def run(self) -> LoadResult:
        # The native core, which many processes that only list plugins never need.
        from modular_tf.loading.bound_files import close_unopened  # noqa: PLC0415
        from modular_tf.loading.loader import map_file  # noqa: PLC0415

        plugin = self._plugin
        if self._config.is_isolated(plugin.name) and plugin.is_isolable:
            self._load_in_worker()
            return self._result()
        try:
            self._library = map_file(
                plugin.path,
                plugin.facts.companions,
                plugin.facts.absent,
                checked=plugin.checked,
                sealed=plugin.sealed or self._config.trust.frozen,
                trust=self._trust,
                tell=partial(self._note, "load"),
            )
        except ShortageError:  # which is not of the library; the next use loads it
            raise
        except ModularTFError as error:
            self._fail("load", error)
            return self._result()
        if plugin.checked:
            self._initialise_judged(self._library, plugin.checked)
        else:
            self._initialise(self._library)
        close_unopened(self._library)
        return self._result()

    def _initialise(self, library: Library) -> None:
        if Kind.FILESYSTEM in self._plugin.facts.kinds:
            self._load_filesystems(library)
        if Kind.DEVICE in self._plugin.facts.kinds:
            self._load_devices(library)
        if Kind.KERNEL in self._plugin.facts.kinds:
            self._load_kernels(library)

    def _initialise_judged(self, library: Library, checked: Sequence[SeenFile]) -> None:
        """Initialise it; where its code opened what is not to be trusted, close all of it again."""
        from modular_tf.loading.bound_files import (  # noqa: PLC0415
            additional_libraries_of,
            by_init,
            is_single_threaded,
        )
        from modular_tf.native.library import mapped_objects  # noqa: PLC0415

        additional = additional_libraries_of(library)._replace(single_threaded=is_single_threaded())
        before = frozenset(mapped_objects())
        self._initialise(library)
        if not by_init.get(additional.stub) and before.issuperset(mapped_objects()):
            return
        from modular_tf.loading.additional_libraries import judge_opened_by_init  # noqa: PLC0415  (mostly nothing)

        try:
            path, trust = self._plugin.path, self._trust
            self._note("load", judge_opened_by_init(path, additional, before, checked, trust))
        except PluginError as error:
            close_served(self.filesystems, self.platform, [], at_exit=False)
            self.filesystems, self.platform, self._tables = [], None, {}
            self.kernels = None
            self._fail("load", error)

    def _result(self) -> LoadResult:
        return LoadResult(
            self._library,
            self._tables,
            tuple(self.filesystems),
            self.platform,
            self.kernels,
            Outcome((), (), tuple(self._reasons), tuple(self._warnings), self._finding()),
            self._failure,
        )

    def _finding(self) -> Finding:
        notes = [
            noted(reason)
            for reason in (*self._reasons, *self._warnings)
            if reason.stage in {"load", "init"}
        ]
        return Finding(None, self._offer(), tuple(notes))

    def _offer(self) -> Offer:
        schemes = tuple(scheme for scheme in self._tables if scheme not in self._failed)
        found = self.kernels
        counts = (0, 0) if found is None else (len(found.kernels), len(found.definitions))
        return Offer(schemes, self._offered_platform(), *counts)

    def _offered_platform(self) -> PlatformOffer | None:
        return None if self.platform is None else PlatformOffer.of(self.platform)

    # -- filesystems ------------------------------------------------------------------------------

    def _load_filesystems(self, library: Library) -> None:
        from modular_tf.loading.filesystem_tables import RefusedTables  # noqa: PLC0415
        from modular_tf.loading.loader import init_filesystems  # noqa: PLC0415

        try:
            offer = init_filesystems(library, plugin=self._plugin.name)
        except PluginError as error:
            self._fail("init", error)
            return
        self._note("init", offer.violations)
        for entry in offer.entries:
            if isinstance(entry, RefusedTables):
                self._note("init", entry.violations, scheme=entry.scheme)
            else:
                self._note("init", entry.warnings, scheme=entry.scheme)
                self._tables[entry.scheme] = entry
                self._open_scheme(entry)

    def _load_in_worker(self) -> None:
        from modular_tf.service.isolated_plugin import load_in_worker  # noqa: PLC0415  (few are)

        try:
            loaded = load_in_worker(self._plugin, self._config)
        except ModularTFError as error:
            self._fail("load", error)
            return
        self._note("init", loaded.notes)
        for tables in loaded.tables:
            self._tables[tables.scheme] = tables
            self._open_scheme(tables, guarded=loaded.guarded)
        if not self.filesystems:
            loaded.worker.leave()

    def _open_scheme(self, tables: FilesystemTables, *, guarded: bool = False) -> None:
        """Initialise one scheme, unless somebody else has it."""
        from modular_tf.filesystem.opening import open_filesystem  # noqa: PLC0415

        scheme, plugin = tables.scheme, self._plugin
        if (why := self._why_taken(scheme)) is not None:
            self._note("register", [why])
            return
        try:
            opened = open_filesystem(
                tables,
                plugin=plugin.name,
                path=plugin.path,
                bundled=plugin.is_bundled,
                guarded=guarded,
            )
        except ModularTFError as error:
            self._note("init", [Violation(SCHEME_INIT_SUCCEEDS, error.message)], scheme=scheme)
            self._failed.add(scheme)
            self._failure = self._failure or error
        else:
            self.filesystems.append(opened.filesystem)
            self._note("init", opened.warnings)

    # -- devices ----------------------------------------------------------------------------------

    def _load_devices(self, library: Library) -> None:
        from modular_tf.device.platform import load_device_platform  # noqa: PLC0415
        from modular_tf.loading.device_loader import RefusedDevicePluginError  # noqa: PLC0415

        ours = self._plugin.is_bundled and library.name == _HOST_DEVICE
        try:
            self.platform = load_device_platform(
                library,
                plugin_name=self._plugin.name,
                priority=HOST_CPU_PRIORITY if ours else PLUGIN_PRIORITY,
                memory=self._config.memory_of,
                copy_streams=self._config.copy_streams,
                survives_fork=ours,
                is_host_memory=ours,
            )
        except RefusedDevicePluginError as error:
            self._note("init", error.violations)
            if self._reasons:
                self._failure = self._failure or error
            else:
                self._fail("init", error)
        else:
            self._note("init", self.platform.warnings)

    # -- kernels ----------------------------------------------------------------------------------

    def _load_kernels(self, library: Library) -> None:
        from modular_tf.kernel.plugin_kernels import plugin_kernels  # noqa: PLC0415
        from modular_tf.loading.kernel_loader import init_kernels  # noqa: PLC0415

        offer = init_kernels(library, plugin=self._plugin.name)
        self._note("init", offer.violations)
        self.kernels = plugin_kernels(offer, self._plugin.name)

    # -- notes ------------------------------------------------------------------------------------

    def _fail(self, stage: str, error: ModularTFError) -> None:
        self._reasons.append(Violation.of_error(error, stage))
        self._failure = self._failure or error

    def _note(self, stage: str, violations: Iterable[Violation], scheme: str | None = None) -> None:
        for violation in violations:
            reasons = self._reasons if violation.is_error else self._warnings
            reasons.append(violation.of_scheme(scheme).at(stage))
