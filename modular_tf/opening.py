"""Opening a plugin: its library is mapped, its init functions run, and its offer is opened.

The application, the child process of a trial and the worker of an isolated plugin all do it here,
so a trial finds what the application would find.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.device.factory import PLUGIN_PRIORITY
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.filesystem.workarounds import import_stores
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import FILESYSTEM_INIT, RefusedTables, init_filesystems
from modular_tf.loading.published import stores_of
from modular_tf.rules import Violation, loader_rules
from modular_tf.rules.filesystem import SCHEME_INIT_SUCCEEDS
from modular_tf.rules.shortage import ShortageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.device.memory.memory_settings import MemorySettings
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.kernel_loader import KernelOffer
    from modular_tf.loading.task import Task
    from modular_tf.native.library import Library


def warm_up() -> None:
    """Do once, in a process that is forked, what each child would do to open a plugin."""
    loader_rules()
    stores_of("")  # which reads the table, whose reader an ordinary user may not see
    import_stores()
    import_module("hashlib")


class DeviceSettings(NamedTuple):
    """What an application decides about a plugin's devices: arguments of `load_device_platform`."""

    priority: int = PLUGIN_PRIORITY
    memory: Callable[[str], MemorySettings] | None = None
    copy_streams: int = 1
    survives_fork: bool = False
    is_host_memory: bool = False


class OpenedPlugin:
    """The library of a plugin, and what is open of its offer. Used by one thread at a time.

    What goes wrong in the plugin is in `notes`, and the rest of it is opened nevertheless.

    `sealed` maps copies, which stay as they are when files are overwritten. `before` is called with
    the name of each call into the plugin, before it is made; devices announce theirs by themselves
    (`announce_calls`). `on_offer` is called with the schemes that it registers, before the first is
    initialised. `conflict_of` returns why a scheme is not opened, None where it is.
    """

    def __init__(
        self,
        task: Task,
        *,
        bundled: bool = False,
        sealed: bool = False,
        devices: DeviceSettings | None = None,
        before: Callable[[str], None] = lambda _: None,
        on_offer: Callable[[list[str]], None] = lambda _: None,
        conflict_of: Callable[[str], Violation | None] = lambda _: None,
    ) -> None:
        self.library: Library | None = None  # None where it could not be mapped
        self.tables: dict[str, FilesystemTables] = {}  # accepted, by scheme, opened or not
        self.filesystems: list[PluginFilesystem] = []  # those that are open
        self.platform: DevicePlatform | None = None
        self.kernels: KernelOffer | None = None  # with definitions of operations
        # broken rules, errors and warnings, in the order in which they were found
        self.notes: list[Violation] = []
        self.failure: ModularTFError | None = None  # the first error
        self._failed: set[str] = set()
        self._task = task
        self._bundled = bundled
        self._sealed = sealed
        self._devices = devices or DeviceSettings()
        self._before = before
        self._on_offer = on_offer
        self._conflict_of = conflict_of

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that it offers: those whose tables were accepted and whose init succeeded."""
        return tuple(scheme for scheme in self.tables if scheme not in self._failed)

    def open(self) -> None:
        """Map the library and open what it offers of the task's kinds.

        Raises `ShortageError` if it cannot be mapped now, as this process has too little of
        something.
        """
        library = self.map()
        if library is not None:
            self.initialise(library)

    def map(self) -> Library | None:
        """Return the library, which is mapped now and whose constructors ran; None if it cannot be.

        Raises `ShortageError` as `open`.
        """
        task = self._task
        self._before("a constructor of the library")
        try:
            self.library = map_file(
                task.file, task.companions, task.absent, checked=task.checked, sealed=self._sealed
            )
        except ModularTFError as error:
            self.fail("load", error)
        return self.library

    def initialise(self, library: Library) -> None:
        """Run the init functions of the mapped library, and open what they register."""
        if "filesystem" in self._task.kinds:
            self._open_filesystems(library)
        if "device" in self._task.kinds:
            self._open_devices(library)
        if "kernel" in self._task.kinds:
            self._open_kernels(library)

    def _open_filesystems(self, library: Library) -> None:
        self._before(FILESYSTEM_INIT)
        try:
            offer = init_filesystems(library, plugin=self._task.plugin)
        except PluginError as error:
            self.fail("init", error)
            return
        self.note("init", offer.violations)
        self._on_offer([entry.scheme for entry in offer.entries if entry.scheme is not None])
        for entry in offer.entries:
            if isinstance(entry, RefusedTables):
                self.note("init", entry.violations, entry.scheme)
            else:
                self.note("init", entry.warnings, entry.scheme)
                self.open_scheme(entry)

    def open_scheme(self, tables: FilesystemTables, *, guarded: bool = False) -> None:
        """Initialise one scheme, unless `conflict_of` objects.

        `map` is not needed for tables of a worker; `guarded`, if that was bound to guarded
        functions.
        """
        scheme, task = tables.scheme, self._task
        self.tables[scheme] = tables
        if (why := self._conflict_of(scheme)) is not None:
            self.note("register", [why])
            return
        self._before(f"init of scheme {scheme!r}")
        try:
            filesystem, warnings = open_filesystem(
                tables, plugin=task.plugin, path=task.file, bundled=self._bundled, guarded=guarded
            )
        except ModularTFError as error:
            self.note("init", [Violation(SCHEME_INIT_SUCCEEDS, error.message)], scheme)
            self._failed.add(scheme)
            self.failure = self.failure or error
        else:
            self.filesystems.append(filesystem)
            self.note("init", warnings)

    def _open_devices(self, library: Library) -> None:
        # What few plugins need is imported with the first of them, here and below.
        from modular_tf.device.platform import load_device_platform  # noqa: PLC0415
        from modular_tf.loading.device_loader import RefusedDevicePluginError  # noqa: PLC0415

        try:
            self.platform = load_device_platform(
                library, plugin_name=self._task.plugin, **self._devices._asdict()
            )
        except RefusedDevicePluginError as error:
            self.note("init", error.violations)
            self.failure = self.failure or error
            if not any(note.is_error for note in self.notes):
                self.fail("init", error)
        else:
            self.note("init", self.platform.warnings)

    def _open_kernels(self, library: Library) -> None:
        from modular_tf.loading.kernel_loader import KERNEL_INIT, init_kernels  # noqa: PLC0415

        self._before(KERNEL_INIT)
        self.kernels = init_kernels(library, plugin=self._task.plugin)
        self.note("init", self.kernels.violations)

    def fail(self, stage: str, error: ModularTFError) -> None:
        """Note the error with which a stage of the whole plugin failed; raise a shortage.

        That is not of the plugin.
        """
        if isinstance(error, ShortageError):
            raise error
        self.notes.append(Violation.of_error(error, stage))
        self.failure = self.failure or error

    def note(self, stage: str, found: Iterable[Violation], scheme: str | None = None) -> None:
        """Note rules that the plugin broke in a stage, in one scheme or in whole."""
        self.notes += [violation.of_scheme(scheme).at(stage) for violation in found]

    def close(self) -> None:
        """Close what is open, in the order of an application that ends."""
        for filesystem in self.filesystems:
            self._before(f"cleanup of scheme {filesystem.scheme!r}")
            with suppress(ModularTFError):
                filesystem.close()
        if self.platform is not None:
            with suppress(ModularTFError):
                self.platform.close()
        self.hand_over()
        self.tables = {}

    def hand_over(self) -> None:
        """Release what is open without closing it: it belongs to others now, or to nobody."""
        self.filesystems, self.platform, self.kernels = [], None, None
