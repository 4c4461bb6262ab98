"""`PluginService`: discovers plugins, loads them, and owns the registries of what they offer."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.threads import TimedWork
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import python_path
from modular_tf.errors import FailedPreconditionError, unexpected
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.service.configuration import Config, load_config, trust_of
from modular_tf.service.hooks import Hooks
from modular_tf.service.instances import Instances
from modular_tf.service.lifetime import (
    ServiceLock,
    close_with_process,
    is_awaited,
    not_closed_in_time,
)
from modular_tf.service.log_output import follow_environment
from modular_tf.service.outcome import NOTHING_LOST, lost_devices, without
from modular_tf.service.pipeline import PluginPipeline
from modular_tf.service.plugins import KnownPlugins, PluginSearch
from modular_tf.service.python_objects import PythonContributions
from modular_tf.service.registrations import reserved_schemes
from modular_tf.service.registries import Registries
from modular_tf.service.reload.hot_reload import HotReload
from modular_tf.service.report import Report
from modular_tf.service.served import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Self

    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.errors import ModularTFError
    from modular_tf.native.measured_calls import CountedCalls
    from modular_tf.service.plugin_entry import PluginEntry
    from modular_tf.service.reload.watching import Watch
    from modular_tf.service.report import PluginChange, PluginRecord
    from modular_tf.service.statistics import ServiceStatistics
    from modular_tf.service.why import Explanation

_PATIENCE_AT_EXIT_S = 5.0


class PluginService(Served):
    """Everything that one application does with plugins. [any thread]

    There is no global state: two services do not see each other. Closing one ends what it serves;
    the libraries stay mapped.

    Args:
        config: The configuration; by default it is read from the user's file.
        plugin_paths: Plugin files or directories to search before all others.
        plugin_dirs: More of the same, after `plugin_paths`.
        bundled: Whether the plugins that come with the package count.
        hooks: Objects with hook functions (`modular_tf.hookspecs`), besides installed ones.
        statistics: Whether the calls into plugins are counted; by default as `config` says.
        fsspec_fallback: As `Config.fsspec_fallback`, which it replaces.
        isolation: As `Config.isolation`, which it replaces.
        call_timeout_s: As `Config.call_timeout_s`, which it replaces.

    Raises:
        ConfigError: The configuration file is not usable.
        ClosedError: The process ends, and this is a thread that it does not wait for.
        ImportError: This is not the main interpreter of the process.
    """

    def __init__(
        self,
        *,
        config: Config | None = None,
        plugin_paths: Sequence[str | os.PathLike[str]] = (),
        plugin_dirs: Sequence[str | os.PathLike[str]] = (),
        bundled: bool = True,
        hooks: Sequence[object] = (),
        statistics: bool | None = None,
        fsspec_fallback: bool | None = None,
        isolation: str | Mapping[str, str] | None = None,
        call_timeout_s: float | None = None,
    ) -> None:
        # Refuses interpreters within the interpreter, which share what all of them would close.
        from modular_tf.native import _dlpack  # noqa: F401, PLC0415  (for what its import does)

        follow_environment()
        self.config = (config or load_config(privileged=is_privileged())).with_given(
            statistics=statistics,
            fsspec_fallback=fsspec_fallback,
            isolation=isolation,
            call_timeout_s=call_timeout_s,
        )
        self._counted: CountedCalls | None = None
        if self.config.statistics:
            from modular_tf.native.measured_calls import CountedCalls  # noqa: PLC0415  (the native core)

            self._counted = CountedCalls()
        arguments = [*_paths(plugin_paths), *_paths(plugin_dirs)]
        self._lock = ServiceLock()
        self._hooks = Hooks(hooks, python_path, trust_of(self.config))
        self._known = KnownPlugins(self.config, lambda: self._contributions.names, self._lock)
        self._search = PluginSearch(
            self._lock, self._known, self.config, self._hooks, arguments, bundled=bundled
        )
        self._registries = Registries.of_process(self.config)
        reserved = reserved_schemes(self.config) if bundled else {}
        self._contributions = PythonContributions(
            self._lock, self._registries, self.config, reserved, self._known.unused_name
        )
        self._contributions.add_configured()
        self._pipeline = PluginPipeline(
            self._lock, self.config, self._known, self._registries, self._hooks, reserved
        )
        self._hot_reload = HotReload(
            self._lock, self.config, self._search, self._pipeline, self._hooks, load_all=self.load
        )
        self._instances = Instances(self.config)
        self._failures: list[ModularTFError] = []  # of closing, until somebody is told
        self._is_ended = False
        self._unclosed: list[PluginEntry] = []
        self._closing = TimedWork()
        close_with_process(self, self.config.close_timeout_s)

    # -- the way of plugins ---------------------------------------------------------------------

    def discover(self) -> Report:
        """Find candidates in all sources and probe them; nothing of theirs is run."""
        self._lock.check_open()
        self._search.run()
        return self.report()

    def load(self, *names_or_paths: str | os.PathLike[str]) -> Report:
        """Register what plugins offer; their code may run from here on.

        Plugins whose bytes are new run in a child process first, if the configuration has it so;
        one that does harm there is `quarantined` and never runs in this process. The library of
        any other is mapped here when somebody first wants what it offers, unless the configuration
        says `load = "eager"`.

        Args:
            names_or_paths: Names as `plugins` lists them, files, or directories of files, which are
                mapped now; by default all that may load, and what hooks bring. For files nothing
                else is searched, unless they lie where Python packages are installed.

        Raises:
            NotFoundError: There is no such plugin or file, or no library in a directory.
        """
        self._lock.check_open()
        names = [_name_or_path(name) for name in names_or_paths]
        self._search.run_for(names)
        if names:
            named = [entry for name in names for entry in self._known.named(name)]
            wanted = list(dict.fromkeys(named))
        else:
            self._known.all_wanted = True
            self._contributions.add_hooked(self._hooks)
            wanted = self._search.all()
        self._pipeline.run(wanted, eager=bool(names))
        return self.report()

    def search_paths(self) -> SearchPaths:
        """Return where this service searches."""
        return self._search.paths()

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
        return self._hot_reload.refresh(None if paths is None else _paths(paths))

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
        return self._hot_reload.watch(on_change)

    @property
    def draining(self) -> int:
        """How many old libraries are kept by those who hold something of them."""
        return self._hot_reload.draining

    # -- what there is --------------------------------------------------------------------------

    def report(self) -> Report:
        """Return what this service knows now; no library that is read or loaded is waited for."""
        found = self._known.found
        return Report(
            plugins=tuple(self.plugins()),
            problems=found.problems if found else (),
            searched=found.searched if found else (),
            hook_failures=self._hooks.failures,
            hooks=self._hooks.functions(),
        )

    def plugins(self) -> list[PluginRecord]:
        """Return one record per plugin, in order of precedence; Python's own come last.

        It waits for no library that another thread reads or loads.
        """
        # Without the lock, under which libraries are read and loaded. The factories of devices,
        # some of which are Python code, are asked too.
        records = self._known.records(self._registries.schemes) + self._contributions.records()
        lost = lost_devices(self._registries.devices)
        return [without(record, lost.get(record.name, NOTHING_LOST)) for record in records]

    def entry(self, name_or_path: str | os.PathLike[str]) -> PluginEntry:
        """Return one plugin: its newest record, probe, library and tables.

        Raises:
            NotFoundError: There is no such plugin or file, or a directory has several.
        """
        name = _name_or_path(name_or_path)
        self._search.run_for([name])
        return self._known.one_named(name)

    def calls_at_once(self, *schemes: str) -> int:
        """Return how many calls work on many files may make at once. [any thread]

        Args:
            schemes: The schemes that it works on. Where none of them waits for a network, one call
                at a time is the fastest.
        """
        return 1 if all(map(is_of_this_machine, schemes)) else self.config.calls_at_once

    def statistics(self) -> ServiceStatistics:
        """Return what the calls into the plugins of this service have cost so far. [any thread]

        It waits for no plugin and no other thread. The counts are the process's: two services with
        a plugin of one name see the calls of both, and a forked child begins with none. Calls are
        counted while a service with `statistics=True` is open.

        Raises:
            FailedPreconditionError: This service counts nothing.
        """
        if not self.config.statistics:
            raise FailedPreconditionError(
                "no calls are counted: ask for it by PluginService(statistics=True), by the key"
                " `statistics` of the configuration, or by MODULAR_TF_STATISTICS=1",
                operation="statistics",
            )
        from modular_tf.service.statistics import statistics_of  # noqa: PLC0415  (the native core)

        return statistics_of({entry.plugin.name for entry in self._known})

    def why(self, name: str | os.PathLike[str]) -> Explanation:
        """Explain a plugin, file, scheme or device type, present or absent."""
        from modular_tf.service.why import explain  # noqa: PLC0415  (it imports this module's types)

        return explain(self, _name_or_path(name))

    # -- what Python brings ---------------------------------------------------------------------

    def register_filesystem(
        self, scheme: str, filesystem: Any, *, replace: bool = False
    ) -> Callable[[], None]:
        """Let a Python object serve a scheme, as a plugin would.

        Args:
            scheme: The scheme; "" for plain paths.
            filesystem: A `Filesystem`, any filesystem of fsspec or `pyarrow.fs`, a store of
                obstore, or an object with some of the operations; one that is missing is like a
                NULL slot of a plugin. It stays the caller's, and is not closed. A store of obstore
                serves the URIs of its own bucket. Files of pyarrow's and obstore's stores are
                collected in `TMPDIR` and put whole by `close` and `flush`.
            replace: Take the scheme from whoever serves it.

        Returns:
            A function that undoes this.

        Raises:
            AlreadyExistsError: Somebody serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name it (rule FS-007).
            TypeError: It is none of these; the message names them.
        """
        self._lock.check_open()
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
        self._lock.check_open()
        return self._contributions.add_device_factory(factory)

    # -- the end --------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether `close` was called; from then on the service does nothing new."""
        return self._lock.closed

    def close(self) -> None:
        """Close open files, filesystems and devices; a second call does nothing.

        Memory regions that are still viewed keep their filesystem until the last view is gone. A
        call that was interrupted is finished by the next, or by the end of the process.

        With `close_timeout_s` in the configuration, plugins close on a thread. What has not ended
        by then goes on there, so that no data are lost; the next call waits for it as long again,
        and the end of the process until it is done.

        Raises:
            DeadlineExceededError: Plugins, which it names, were not closed in time; or an
                asynchronous kernel whose call was interrupted was not done two seconds later: what
                it may use of its device is never freed then.
            ModularTFError: The first failure; the rest was closed all the same.
        """
        timeout = self.config.close_timeout_s
        if timeout is not None and not self._is_ended and not is_awaited():
            close = partial(self._close, at_exit=False)
            if not self._closing.run(close, "close of a service", timeout):
                raise not_closed_in_time([entry.plugin.name for entry in self._unclosed], timeout)
        self._close(at_exit=False)  # what a thread has done already is done
        # In place: another thread that closes it may be about to add to the list.
        failures, self._failures[:] = self._failures[:], []
        if failures:
            raise failures[0]

    def _close(self, *, at_exit: bool) -> None:
        if self._is_ended:
            return
        with self._lock:
            self._lock.closed = True
            entries = list(self._known)
            self._registries.schemes.close()
            self._registries.devices.close()
        self._registries.operations.close()
        # Without the lock, which their last change may wait for; at exit that was waited for.
        self._hot_reload.stop_watching(0.0 if at_exit else None)
        self._pipeline.close()
        self._instances.close(self._failures, at_exit=at_exit)
        self._unclosed = entries
        while entries:
            entries[-1].close(self._failures, at_exit=at_exit)
            entries.pop()  # not before: an interrupt must leave it to be named
        self._hot_reload.close(self._failures, at_exit=at_exit)
        if self._counted is not None:
            self._counted.close()
        self._is_ended = True  # each of these may be done again, if an interrupt came before

    def close_at_exit(self) -> list[ModularTFError]:
        """Close without waiting for memory regions; called when the process ends.

        Returns:
            What went wrong.
        """
        self._hot_reload.stop_watching(_PATIENCE_AT_EXIT_S)
        # A thread that hangs in some plugin's init holds the lock, and must not keep the process.
        if self._lock.acquire(timeout=_PATIENCE_AT_EXIT_S):
            try:
                self._close(at_exit=True)
            finally:
                self._lock.release()
        return self._failures

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child; called there by itself."""
        for entry in self._known:
            entry.after_fork_in_child()
        self._contributions.after_fork_in_child()
        self._registries.fallback.after_fork_in_child()
        self._instances.after_fork_in_child()
        self._hot_reload.after_fork_in_child()

    def __enter__(self) -> Self:
        self._lock.check_open()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _name_or_path(found: str | os.PathLike[str]) -> str:
    """Return the name or the path of a plugin as a text; raises InvalidArgumentError for others."""
    try:
        return os.fsdecode(found)
    except TypeError:
        raise unexpected(found, "a plugin", "a name or a path") from None


def _paths(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, str | bytes):  # it would count as a list of its letters
        raise TypeError(f"expected a list of paths, found {paths!r}")
    return [_name_or_path(path) for path in paths]
