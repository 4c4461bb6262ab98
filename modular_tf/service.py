"""`PluginService`: discovers plugins, loads them, and owns the registries of what they offer."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from modular_tf.admission import Admission
from modular_tf.configuration import Config, load_config
from modular_tf.device.registry import DeviceRegistry
from modular_tf.device.visible import parse_enabled_types
from modular_tf.device_outcomes import with_device_outcomes
from modular_tf.discovery.search_paths import SearchPaths, is_privileged, python_path
from modular_tf.errors import ClosedError, ModularTFError
from modular_tf.filesystem.registry import FilesystemRegistry
from modular_tf.fork_lock import ForkLock
from modular_tf.hooks import Hooks
from modular_tf.known_plugins import KnownPlugins
from modular_tf.live_services import keep_in_sight
from modular_tf.log_output import follow_environment
from modular_tf.plugin_generation import Registries
from modular_tf.python_contributions import PythonContributions
from modular_tf.report import Report
from modular_tf.shadowing import without_lost_schemes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.device import Device
    from modular_tf.explanation import Explanation
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.plugin_change import PluginChange
    from modular_tf.plugin_entry import PluginEntry
    from modular_tf.plugin_watch import Watch
    from modular_tf.renewal import Renewal, Scope
    from modular_tf.report import PluginRecord, State
    from modular_tf.watching.change import Change

_PATIENCE_AT_EXIT_S = 5.0


class PluginService:
    """Everything that one application does with plugins. [any thread]

    There is no global state: two services do not see each other. Closing one ends what it serves;
    the libraries stay mapped.

    Args:
        config: The configuration; by default it is read from the user's file.
        plugin_paths: Plugin files or directories to search before all others.
        plugin_dirs: More of the same, after `plugin_paths`.
        bundled: Whether the plugins that come with the package count.
        hooks: Objects with hook functions (`modular_tf.hookspecs`), besides installed ones.

    Raises:
        ConfigError: The configuration file is not usable.
    """

    def __init__(
        self,
        *,
        config: Config | None = None,
        plugin_paths: Sequence[str | os.PathLike[str]] = (),
        plugin_dirs: Sequence[str | os.PathLike[str]] = (),
        bundled: bool = True,
        hooks: Sequence[object] = (),
    ) -> None:
        follow_environment()
        self.config = load_config(privileged=is_privileged()) if config is None else config
        self._arguments = (*_paths(plugin_paths), *_paths(plugin_dirs))
        self._bundled = bundled
        self._given_hooks = tuple(hooks)
        self._hooks: Hooks | None = None
        self._lock = threading.RLock()
        self._known = KnownPlugins(self.config, lambda: self._contributions.names)
        self._admission = Admission(self.config, self._known.cache)
        self._filesystems = FilesystemRegistry()
        self._devices = DeviceRegistry(
            priorities=self.config.priorities,
            enabled_types=parse_enabled_types(os.environ.get("TF_ENABLED_DEVICE_TYPES")),
            visible=self.config.visible_devices or None,
            dlpack_types=self.config.dlpack_types,
        )
        self._registries = Registries(self._filesystems, self._devices)
        self._contributions = PythonContributions(
            self._filesystems, self._devices, self.config.scheme_pins, self._known.unused_name
        )
        self._followed: Renewal | None = None
        self._watches: list[Watch] = []
        self._seals = False  # whether plugins are mapped from copies
        self._closed = False
        keep_in_sight(self)

    # -- the way of plugins ---------------------------------------------------------------------

    def discover(self) -> Report:
        """Find candidates in all sources and probe them; nothing of theirs is run."""
        with self._lock:
            self._check_open()
            self._known.search(self.search_paths())
            return self.report()

    def load(self, *names_or_paths: str | os.PathLike[str]) -> Report:
        """Register what plugins offer; their code may run from here on.

        Plugins whose bytes are new run in a child process first, if the configuration has it so;
        one that does harm there is `quarantined` and never runs in this process. The library of
        any other is mapped here when somebody first wants what it offers, unless the configuration
        says `load = "eager"`.

        Args:
            names_or_paths: Names as `plugins` lists them, files, or directories of files, which are
                mapped now; by default all that may load, and what hooks bring.

        Raises:
            NotFoundError: A name is not among the plugins, a file does not exist, or there is no
                library in a directory.
        """
        with self._lock:
            self._check_open()
            self._search_once()
            if names_or_paths:
                named = (self._known.named(os.fsdecode(name)) for name in names_or_paths)
                wanted = [entry for entries in named for entry in entries]
            else:
                wanted = list(self._known)
                self._contributions.add_hooked(self._all_hooks())
            self._load(list(dict.fromkeys(wanted)), eager=bool(names_or_paths))
        return self.report()

    def _search_once(self) -> None:
        if self._known.found is None:
            self._known.search(self.search_paths())

    def search_paths(self) -> SearchPaths:
        """Return where this service searches."""
        return SearchPaths.of_process(
            arguments=self._arguments,
            config_directories=(
                *self.config.plugin_dirs,
                *self._all_hooks().plugin_paths(self.config),
            ),
            config_origin=self.config.origin,
            bundled=self._bundled,
        )

    def _all_hooks(self) -> Hooks:
        if self._hooks is None:
            self._hooks = Hooks(self._given_hooks, python_path())
        return self._hooks

    # -- following changes ----------------------------------------------------------------------

    def refresh(self, paths: Iterable[str | os.PathLike[str]] | None = None) -> list[PluginChange]:
        """Load plugin files that are new, renew plugins whose file is another, drop those without.

        A renewed plugin's old library serves who holds something of it, and nobody new; a file
        that does not load leaves the old one serving. A library's bytes stay mapped for good.

        Args:
            paths: The files to look at; by default all in the places of plugins. They should be
                whole: a `watch` waits for that.

        Returns:
            What became of it, removed plugins first.
        """
        from modular_tf.renewal import Scope  # noqa: PLC0415  (as in _renewal)

        return self._renew(Scope(None if paths is None else map(os.path.abspath, _paths(paths))))

    @property
    def _renewal(self) -> Renewal:
        """What follows changes, made at the first; most processes follow none."""
        if self._followed is None:
            from modular_tf.renewal import Renewal  # noqa: PLC0415  (as said)

            self._followed = Renewal(self._known, self._load)
        return self._followed

    def _renew(self, scope: Scope) -> list[PluginChange]:
        with self._lock:
            self._check_open()
            if self._known.found is None:
                self.load()
                return []
            renewed = self._renewal.prepare(self.search_paths(), scope)
            before = [entry.state for entry in renewed.entries]
            untried = self._judge(renewed.entries)
        findings = self._admission.try_out(untried)  # without the lock: it may take its time
        with self._lock:
            self._check_open()
            self._admission.conclude(untried, findings)
            self._register(renewed.entries, before)
            changes = self._renewal.finish(renewed)
        for change in changes:
            self._all_hooks().changed(change)
        return changes

    def _follow(self, changes: Sequence[Change]) -> list[PluginChange]:
        """Take note of what a watch has seen."""
        whole = {change.path: change.identity for change in changes}
        from modular_tf.renewal import Scope  # noqa: PLC0415  (as in _renewal)

        return self._renew(Scope(whole, whole))

    def watch(self, on_change: Callable[[PluginChange], object] | None = None) -> Watch:
        """Follow changes of plugin files in threads, until the watch or the service is closed.

        Loads all plugins first if nothing was searched yet. Plugins that are loaded from then on
        are mapped at once and from copies in memory, so that their files may be overwritten in
        place; those that were loaded before are not. What pip installs anew is not seen.

        Args:
            on_change: Called after each change, from one of those threads.

        Raises:
            ClosedError: The service is closed.
        """
        # Most services have none.
        from modular_tf.plugin_watch import Watch  # noqa: PLC0415
        from modular_tf.watching.watcher import WatcherSettings  # noqa: PLC0415

        settings = WatcherSettings(self.config.watch_polling, self.config.watch_poll_interval_s)
        with self._lock:
            self._check_open()
            self._seals = True
            self._admission.keep_warm()
            if self._known.found is None:
                self.load()
            known = self._renewal.known_files()
            watch = Watch(self._watched_places, known, self._follow, settings, on_change)
            self._watches.append(watch)
        return watch

    @property
    def draining(self) -> int:
        """How many old generations are kept by those who hold something of them."""
        return 0 if self._followed is None else self._followed.draining

    def _watched_places(self) -> list[str]:
        with self._lock:
            self._renewal.finish_drained()
            return self._renewal.places()

    def _load(self, entries: Sequence[PluginEntry], *, eager: bool = False) -> None:
        """Run the way of plugins that were found; those that are loaded already stay so."""
        before = [entry.state for entry in entries]
        untried = self._judge(entries)
        self._admission.conclude(untried, self._admission.try_out(untried))
        self._register(entries, before, eager=eager)

    def _judge(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        """Apply the user's decisions and what is remembered; return what has to be tried."""
        for entry in entries:
            entry.sealed = entry.sealed or (self._seals and not entry.bundled)
            entry.apply_policy(self.config, self._all_hooks().veto)
        return self._admission.recall(entries)

    def _register(
        self, entries: Sequence[PluginEntry], before: Sequence[State], *, eager: bool = False
    ) -> None:
        """Register plugins that may run, and tell the hooks of those whose state changed."""
        eager = eager or self.config.load == "eager"
        for entry, state in zip(entries, before, strict=True):
            entry.register(self.config, self._registries, self._admission.mark, eager=eager)
            self._admission.remember_offer(entry)
            if entry.state is not state:
                self._all_hooks().outcome(entry.record)
        self._known.cache.save()

    # -- what there is --------------------------------------------------------------------------

    def report(self) -> Report:
        """Return what this service knows now."""
        with self._lock:
            found = self._known.found
            return Report(
                plugins=tuple(self.plugins()),
                problems=found.problems if found else (),
                searched=found.searched if found else (),
                hook_failures=tuple(self._hooks.failures) if self._hooks else (),
            )

    def plugins(self) -> list[PluginRecord]:
        """Return one record per plugin, in order of precedence; Python's own come last."""
        with self._lock:
            serving = self._filesystems.view
            records = [
                without_lost_schemes(entry.record(), entry.filesystems, serving)
                for entry in self._known
            ]
            records += self._contributions.records()
            return with_device_outcomes(records, self._devices)

    def entry(self, name_or_path: str | os.PathLike[str]) -> PluginEntry:
        """Return all that is known of one plugin: its probe, library and tables.

        Raises:
            NotFoundError: There is no such plugin or file, or a directory has several.
        """
        with self._lock:
            self._search_once()
            return self._known.one_named(os.fsdecode(name_or_path))

    def schemes(self) -> dict[str, str]:
        """Return the name of the plugin that serves each scheme, sorted by scheme."""
        return {s: fs.plugin for s, fs in sorted(dict(self._filesystems.view).items())}

    def devices(self, device_type: str | None = None) -> list[Device]:
        """Return the visible devices, of one type or all."""
        self._check_open()
        return self._devices.devices(device_type)

    @property
    def device_registry(self) -> DeviceRegistry:
        """Every factory and what became of it."""
        return self._devices

    def device(self, name: str) -> Device:
        """Return the device of that name, in any of TensorFlow's forms.

        Raises:
            NotFoundError: No visible device has it.
            InvalidArgumentError: It is no device name.
            ClosedError: The service is closed.
        """
        self._check_open()
        return self._devices.device(name)

    def filesystem(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme, "" for plain paths.

        Raises:
            UnimplementedError: None serves it; the message lists those that are served.
            ClosedError: The service is closed.
        """
        return self._filesystems.get(scheme)

    def filesystem_for(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme.

        Raises:
            UnimplementedError: None serves it.
            ClosedError: The service is closed.
        """
        return self._filesystems.for_uri(uri)

    def why(self, name: str | os.PathLike[str]) -> Explanation:
        """Explain a plugin, file, scheme or device type, present or absent."""
        from modular_tf.explanation import explain  # noqa: PLC0415  (it imports this module's types)

        return explain(self, os.fsdecode(name))

    # -- what Python brings ---------------------------------------------------------------------

    def register_filesystem(
        self, scheme: str, filesystem: Any, *, replace: bool = False
    ) -> Callable[[], None]:
        """Let a Python object serve a scheme, as a plugin would.

        Args:
            scheme: The scheme; "" for plain paths.
            filesystem: A `Filesystem`, any fsspec filesystem, or an object with some of the
                operations; one that is missing is like a NULL slot of a plugin.
            replace: Take the scheme from whoever serves it.

        Returns:
            A function that undoes this.

        Raises:
            AlreadyExistsError: Somebody serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name it (rule FS-007).
            TypeError: The object has no operation of a filesystem.
        """
        with self._lock:
            self._check_open()
            return self._contributions.add_filesystem(scheme, filesystem, replace=replace)

    def register_device_factory(self, factory: Any) -> Callable[[], None]:
        """Let a Python object offer devices, as a plugin would.

        Args:
            factory: See `modular_tf.device.factory.DeviceFactory`.

        Returns:
            A function that undoes this.

        Raises:
            AlreadyExistsError: Its platform's name is taken (rule SE-050).
            InvalidArgumentError: It has no usable type or platform.
        """
        with self._lock:
            self._check_open()
            return self._contributions.add_device_factory(factory)

    # -- the end --------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Close open files, filesystems and devices; a second call does nothing.

        Memory regions that are still viewed keep their filesystem until the last view is gone.

        Raises:
            ModularTFError: The first failure; the rest was closed all the same.
        """
        errors = self._close(at_exit=False)
        if errors:
            raise errors[0]

    def _close(self, *, at_exit: bool) -> list[ModularTFError]:
        with self._lock:
            if self._closed:
                return []
            self._closed = True
            entries = list(self._known)
            self._filesystems.close()
            watches, self._watches = self._watches, []
        for watch in watches:  # without the lock, which its last change may wait for
            watch.close(0.0 if at_exit else None)  # at exit they have been waited for
        self._admission.close()
        errors = [error for entry in reversed(entries) for error in entry.close(at_exit=at_exit)]
        return errors + ([] if self._followed is None else self._followed.close(at_exit=at_exit))

    def close_at_exit(self) -> None:
        """Close without waiting for memory regions; called when the process ends."""
        for watch in self._watches:
            watch.close(_PATIENCE_AT_EXIT_S)
        # A thread that hangs in some plugin's init holds the lock, and must not keep the process.
        if self._lock.acquire(timeout=_PATIENCE_AT_EXIT_S):
            try:
                self._close(at_exit=True)
            finally:
                self._lock.release()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child; called there by itself."""
        self._lock = threading.RLock()
        for entry in self._known:
            entry.after_fork_in_child()
        if self._followed is not None:
            self._followed.after_fork_in_child()
        self._admission.after_fork_in_child()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the plugin service is closed")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, str | bytes):  # it would count as a list of its letters
        raise TypeError(f"expected a list of paths, found {paths!r}")
    return [os.fsdecode(path) for path in paths]


_default: PluginService | None = None
_default_lock = ForkLock()


def default_service() -> PluginService:
    """Return the service behind `mtf.gfile` and the like, made and loaded at its first use."""
    global _default  # noqa: PLW0603  (the one service of TensorFlow's habits)
    service = _default
    if service is not None and not service._closed:  # noqa: SLF001  (of this module; asked often)
        return service
    with _default_lock:
        if _default is None or _default.closed:
            service = PluginService()
            service.load()
            _default = service
        return _default
