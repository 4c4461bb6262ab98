"""`PluginService`: discovers plugins, loads them, and owns the registries of what they offer."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.configuration import Config, load_config
from modular_tf.device.ranking import FactoryState
from modular_tf.device.registry import DeviceRegistry
from modular_tf.device.visible import parse_enabled_types
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.host_offer import host_offer
from modular_tf.discovery.probe import Prober
from modular_tf.discovery.search import Discovery, discover
from modular_tf.discovery.search_paths import SearchPaths, is_privileged
from modular_tf.errors import ClosedError, ModularTFError, NotFoundError, PluginError
from modular_tf.filesystem.registry import FilesystemRegistry
from modular_tf.hooks import Hooks
from modular_tf.live_services import keep_in_sight
from modular_tf.plugin_entry import PluginEntry
from modular_tf.python_contributions import PythonContributions
from modular_tf.report import PluginRecord, Reason, Report, State
from modular_tf.shadowing import without_lost_schemes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.device import Device
    from modular_tf.explanation import Explanation
    from modular_tf.filesystem.filesystem import Filesystem

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
        self.config = load_config(privileged=is_privileged()) if config is None else config
        self._arguments = tuple(os.fspath(path) for path in (*plugin_paths, *plugin_dirs))
        self._bundled = bundled
        self._given_hooks = tuple(hooks)
        self._hooks: Hooks | None = None
        self._hooked = False
        self._lock = threading.RLock()
        self._discovery: Discovery | None = None
        self._entries: dict[str, PluginEntry] = {}
        self._filesystems = FilesystemRegistry()
        self._devices = DeviceRegistry(
            priorities=self.config.priorities,
            enabled_types=parse_enabled_types(os.environ.get("TF_ENABLED_DEVICE_TYPES")),
            visible=self.config.visible_devices or None,
        )
        self._contributions = PythonContributions(
            self._filesystems, self._devices, self.config.scheme_pins, self._unused_name
        )
        self._closed = False
        keep_in_sight(self)

    # -- the way of plugins ---------------------------------------------------------------------

    def discover(self) -> Report:
        """Find candidates in all sources and probe them; nothing of theirs is run."""
        with self._lock:
            self._check_open()
            discovery = discover(self.search_paths())
            self._discovery = discovery
            self._probe(discovery)
        return self.report()

    def load(self, *names_or_paths: str | os.PathLike[str]) -> Report:
        """Load plugins and register what they offer; their code runs from here on.

        Args:
            names_or_paths: Names as `plugins` lists them, files, or directories of files; by
                default all that may load, and what hooks bring.

        Raises:
            NotFoundError: A name is not among the plugins, a file does not exist, or there is no
                library in a directory.
        """
        with self._lock:
            self._check_open()
            if self._discovery is None:
                self.discover()
            if names_or_paths:
                named = (self._named(os.fspath(name)) for name in names_or_paths)
                wanted = [entry for entries in named for entry in entries]
            else:
                wanted = list(self._entries.values())
                self._register_hooked()
            for entry in wanted:
                self._load(entry)
        return self.report()

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
            paths = SearchPaths.of_process(bundled=self._bundled).python_path
            self._hooks = Hooks(self._given_hooks, paths)
        return self._hooks

    def _probe(self, discovery: Discovery) -> None:
        """Make entries of new candidates; what is known already goes on."""
        known = self._by_identity()
        with Prober(host_offer()) as prober:
            for candidate in discovery.candidates:
                if candidate.identity not in known:
                    entry = PluginEntry(prober.probe(candidate))
                    entry.name = self._unused_name(entry.name)
                    self._entries[entry.name] = entry

    def _by_identity(self) -> dict[tuple[int, int], PluginEntry]:
        """Return the entries by device and inode, without those whose file is gone.

        A system may give the inode of a deleted file to the next one that is made.
        """
        there = (entry for entry in self._entries.values() if entry.is_there)
        return {entry.probe.candidate.identity: entry for entry in there}

    def _unused_name(self, name: str) -> str:
        taken = self._entries.keys() | self._contributions.names
        number, unused = 2, name
        while unused in taken:
            unused = f"{name}#{number}"
            number += 1
        return unused

    def _named(self, name_or_path: str) -> list[PluginEntry]:
        """Return the entry of a name or of a file, which is looked at if it is new.

        A directory has an entry for each library in it.
        """
        if name_or_path in self._entries:
            return [self._entries[name_or_path]]
        if os.sep not in name_or_path and not os.path.lexists(name_or_path):
            raise NotFoundError(
                f"no plugin {name_or_path!r}; found: {sorted(self._entries)}",
                plugin=name_or_path,
                operation="load",
            )
        only_it = SearchPaths(arguments=(name_or_path,), sources=frozenset((Source.ARGUMENT,)))
        found = discover(only_it)
        if not found.candidates:
            why = found.problems[0].message if found.problems else "there is no library in it"
            raise NotFoundError(f"{name_or_path}: {why}", path=name_or_path, operation="load")
        self._probe(found)
        known = self._by_identity()
        return [known[c.identity] for c in found.candidates if c.identity in known]

    def _load(self, entry: PluginEntry) -> None:
        before = entry.state
        entry.load(self.config, self._all_hooks().veto, self._filesystems, self._devices)
        if entry.state is not before:
            self._all_hooks().outcome(entry.record())

    def _register_hooked(self) -> None:
        """Register what hooks bring, once; what is refused stands in the report."""
        if not self._hooked:
            self._hooked = True
            self._contributions.add_hooked(self._all_hooks())

    # -- what there is --------------------------------------------------------------------------

    def report(self) -> Report:
        """Return what this service knows now."""
        with self._lock:
            found = self._discovery
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
                for entry in self._entries.values()
            ]
            records += self._contributions.records()
            outcomes = dict(self._device_outcomes())
        return [_with_device_outcome(record, *outcomes.get(record.name, (None, None)))
                for record in records]  # fmt: skip

    def _device_outcomes(self) -> Iterator[tuple[str, tuple[State, Reason]]]:
        """Yield the plugins whose devices do not serve or cannot be counted, and why."""
        states = {FactoryState.SHADOWED: State.SHADOWED, FactoryState.DISABLED: State.DISABLED}
        for status in self._devices.factories():
            if status.reason is not None:
                reason = Reason.of_violation("register", status.reason)
                yield status.registration.plugin, (states[status.state], reason)
        with suppress(ModularTFError):  # a bad choice of visible devices; devices() raises it
            for problem in self._devices.listing().problems:
                reason = Reason.of_error("list", problem.error)
                yield problem.registration.plugin, (State.LOADED, reason)

    def entry(self, name_or_path: str) -> PluginEntry:
        """Return all that is known of one plugin: its probe, library and tables.

        Raises:
            NotFoundError: There is no such plugin or file, or a directory has several.
        """
        with self._lock:
            if self._discovery is None:
                self.discover()
            found = self._named(name_or_path)
        if len(found) > 1:
            names = [entry.name for entry in found]
            raise NotFoundError(f"{name_or_path}: name one of {names}", path=name_or_path)
        return found[0]

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

    def why(self, name: str) -> Explanation:
        """Explain a plugin, file, scheme or device type, present or absent."""
        from modular_tf.explanation import explain  # noqa: PLC0415  (it imports this module's types)

        return explain(self, name)

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
            entries = list(self._entries.values())
            self._filesystems.close()
        return [error for entry in reversed(entries) for error in entry.close(at_exit=at_exit)]

    def _served(self) -> Iterator[Filesystem]:
        for entry in self._entries.values():
            yield from entry.filesystems.values()

    def close_at_exit(self) -> None:
        """Close without waiting for memory regions; called when the process ends."""
        # A thread that hangs in some plugin's init holds the lock, and must not keep the process.
        if self._lock.acquire(timeout=_PATIENCE_AT_EXIT_S):
            try:
                self._close(at_exit=True)
            finally:
                self._lock.release()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child; called there by itself."""
        self._lock = threading.RLock()
        self._filesystems.after_fork_in_child()
        for filesystem in self._served():
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the plugin service is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _with_device_outcome(
    record: PluginRecord, state: State | None, reason: Reason | None
) -> PluginRecord:
    """Say why a plugin's devices do not serve, where they do not."""
    if state is None or reason is None:
        return record
    kept = State.LOADED if record.schemes else state
    types = record.device_types if state is State.LOADED else ()
    return replace(record, state=kept, device_types=types, reasons=(*record.reasons, reason))


_default: PluginService | None = None
_default_lock = threading.Lock()


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


def loaded_or_raise(report: Report, paths: Iterable[str]) -> None:
    """Raise for the first of some files that did not load, as TensorFlow's functions do.

    Raises:
        PluginError: With the reason's rule.
    """
    real = {os.path.realpath(path) for path in paths}
    for record in report.plugins:
        if record.path and os.path.realpath(record.path) in real and record.reason is not None:
            reason = record.reason
            raise PluginError(
                f"{record.path}: {reason.message}", plugin=record.name, rule=reason.rule
            )
