"""`PluginService`: discovers plugins, loads them, and owns the registries of what they offer."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import holds_lock
from modular_tf.concurrency.threads import Work, is_main_thread
from modular_tf.discovery.candidate import Kind
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import python_path
from modular_tf.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
    unexpected,
)
from modular_tf.filesystem.registry import DeferredFilesystem
from modular_tf.filesystem.uri import is_of_this_machine, scheme_of
from modular_tf.loading.published import package_for
from modular_tf.service.configuration import Config, load_config, trust_of
from modular_tf.service.configured_filesystems import commands_for, foreseen_problem
from modular_tf.service.hooks import Hooks
from modular_tf.service.instances import Instances, shared_name
from modular_tf.service.lifetime import (
    ServiceLock,
    close_with_process,
    is_awaited,
    not_closed_in_time,
)
from modular_tf.service.log_output import follow_environment
from modular_tf.service.pipeline import PluginPipeline
from modular_tf.service.plugins import KnownPlugins
from modular_tf.service.python_objects import PythonContributions
from modular_tf.service.registrations import Registries, reserved_schemes
from modular_tf.service.reload.hot_reload import HotReload
from modular_tf.service.report import NOTHING_LOST, Report, State, lost_devices, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Self

    from modular_tf.device.device import Device
    from modular_tf.device.registry import DeviceRegistry, RegisteredPlatform
    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.isolation.worker import WorkerRecord
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.registry import KernelRegistry
    from modular_tf.native.measured_calls import CountedCalls
    from modular_tf.service.plugin import Plugin, PluginEntry
    from modular_tf.service.reload.watching import Watch
    from modular_tf.service.report import PluginChange, PluginRecord
    from modular_tf.service.statistics import ServiceStatistics
    from modular_tf.service.why import Explanation

_PATIENCE_AT_EXIT_S = 5.0
_NOT_LOADED = frozenset((State.QUARANTINED, State.REJECTED, State.FAILED, State.DISABLED))


class PluginService:
    """Everything that one application does with plugins. [any thread]

    There is no global state: two services do not see each other. Closing one ends what it serves;
    the libraries stay mapped.

    An interrupt of the main thread, such as Ctrl-C, ends its wait for a search, a trial, a library
    that is mapped or closed, or a registration: another thread does these, and brings them to their
    end. So a plugin's init functions run in a thread that is not the main one.

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
        self._known = KnownPlugins(
            self._lock,
            self.config,
            self._hooks,
            arguments,
            lambda: self._contributions.names,
            bundled=bundled,
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
            self._lock, self.config, self._known, self._pipeline, self._hooks, load_all=self.load
        )
        self._instances = Instances(self.config)
        self._failures: list[ModularTFError] = []  # of closing, not raised yet
        self._is_ended = False
        self._unclosed: list[PluginEntry] = []
        self._closing: Work[None] | None = None
        close_with_process(self, self.config.close_timeout_s)

    # -- the way of plugins ---------------------------------------------------------------------

    def discover(self) -> Report:
        """Find candidates in all sources and probe them; nothing of theirs is run."""
        self._lock.check_open()
        self._known.search()
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
            ResourceExhaustedError: This process has too few descriptors or too little memory
                (rule LD-113). Plugins that were not loaded are loaded by the next call.
        """
        self._lock.check_open()
        names = [_name_or_path(name) for name in names_or_paths]
        self._known.search_for(names)
        if names:
            named = [entry for name in names for entry in self._known.named(name)]
            wanted = list(dict.fromkeys(named))
        else:
            self._known.all_wanted = True
            self._contributions.add_hooked(self._hooks)
            wanted = list(self._known)
        self._pipeline.run(wanted, eager=bool(names))
        return self.report()

    def search_paths(self) -> SearchPaths:
        """Return where this service searches."""
        return self._known.paths()

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

        Raises:
            ResourceExhaustedError: As of `load`.
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
        self._known.search_for([name])
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

    # -- filesystems and devices ----------------------------------------------------------------

    def schemes(self) -> dict[str, str]:
        """Return the name of who serves each scheme, sorted by scheme.

        That is a plugin, an object of Python, or, as `fsspec.SCHEME`, what the configuration names
        or fsspec has for a scheme that nobody else serves (`fallback_schemes`).
        """
        serving = {s: fs.plugin for s, fs in self._registries.schemes.serving.items()}
        return dict(sorted({**self._fallback_owners(), **serving}.items()))

    def _fallback_owners(self) -> dict[str, str]:
        return {} if self._lock.closed else self._registries.fallback.owners()

    def fallback_schemes(self) -> dict[str, str]:
        """Return the schemes that fsspec's clients serve, since nobody else does.

        Returns:
            Who serves it and why, by scheme, each one sentence without a full stop.
        """
        others = self._fallback_owners().keys() - self._registries.schemes.serving.keys()
        return {scheme: self.fallback_sentence(scheme) for scheme in sorted(others)}

    def fallback_sentence(self, scheme: str) -> str:
        """Return which client of fsspec serves a scheme, and why."""
        return self._registries.fallback.sentence(scheme)

    def owner(self, scheme: str) -> str | None:
        """Return the name of who serves a scheme, as `schemes`; None for nobody."""
        serving = self._registries.schemes.serving.get(scheme)
        if serving is not None:
            return serving.plugin
        return None if self._lock.closed else self._registries.fallback.owner(scheme)

    def is_fallback(self, scheme: str) -> bool:
        """Return whether fsspec's client serves a scheme, since nobody else does."""
        return scheme not in self._registries.schemes.serving and self.owner(scheme) is not None

    def foreseen_problem(self, scheme: str) -> tuple[str, str]:
        """Return why what the configuration names for a scheme cannot be made, and what to do.

        Nothing is imported for it but fsspec. ("", "") where nothing is foreseen.
        """
        serving = self._registries.schemes.serving.get(scheme)
        is_made = not isinstance(serving, DeferredFilesystem)
        configured = None if is_made else self.config.filesystems.get(scheme)
        return ("", "") if configured is None else foreseen_problem(configured)

    def next_step(self, scheme: str) -> str:
        """Return how to have a scheme served that nobody serves; "" where that is not known."""
        fallback, package = self._registries.fallback, package_for(scheme)
        has_plugin = package is not None and any(
            entry.plugin.candidate.distribution == package.name for entry in self._known
        )
        commands = commands_for(scheme, has_plugin=has_plugin)
        if not commands:
            return ""
        step = "to have it: " + " or ".join(f"`{command}`" for command in commands)
        if pinned := self.config.scheme_pins.get(scheme):
            return f"{step}; `scheme_pins` in {self.config.origin} gives it to {pinned!r} alone"
        off = f'; fsspec\'s client also needs {scheme} = "fsspec" in [filesystems], since '
        return step + off + fallback.why_off if fallback.why_off else step

    def devices(self, device_type: str | None = None) -> list[Device]:
        """Return the visible devices, of one type or all."""
        self._lock.check_open()
        return self._registries.devices.devices(device_type)

    @property
    def device_registry(self) -> DeviceRegistry:
        """Every factory and what became of it."""
        return self._registries.devices

    def device(self, name: str) -> Device:
        """Return the device of that name, in any of TensorFlow's forms.

        Raises:
            NotFoundError: No visible device has it; the message names the device plugins that are
                not loaded, such as those in quarantine.
            InvalidArgumentError: It is no device name.
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        try:
            return self._registries.devices.device(name)
        except NotFoundError as error:
            if not (not_loaded := self._not_loaded()):
                raise
            text = f"{error.message}; not loaded: {not_loaded}; see modular-tf why PLUGIN"
            raise NotFoundError(text, path=name) from error

    def _not_loaded(self) -> str:
        """Return the device plugins that were found and are not loaded, each with its state."""
        not_loaded = [
            (record.name, record.state.value, record.reason.rule if record.reason else None)
            for record in self._known.records(self._registries.schemes)
            if Kind.DEVICE.value in record.kinds and record.state in _NOT_LOADED
        ]
        return ", ".join(
            f"{name} ({state}, {rule})" if rule else f"{name} ({state})"
            for name, state, rule in not_loaded
        )

    def platform(self, name: str) -> RegisteredPlatform:
        """Return the device platform of that name, in any case, whether it serves or not.

        Raises:
            NotFoundError: No registered platform has it.
        """
        return self._registries.devices.platform(name)

    def filesystem(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme, "" for plain paths.

        Raises:
            UnimplementedError: None serves it; the message lists those that are served, and says
                of a plugin that does not get the scheme how to give it to that.
            ClosedError: The service is closed.
        """
        try:
            return self._registries.schemes.get(scheme)
        except UnimplementedError as error:
            raise self._with_refusals(error, scheme) from None

    def filesystem_for(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme.

        Raises:
            UnimplementedError: None serves it; the message is as that of `filesystem`.
            ClosedError: The service is closed.
        """
        try:
            return self._registries.schemes.for_uri(uri)
        except UnimplementedError as error:
            raise self._with_refusals(error, scheme_of(uri)) from None

    def _with_refusals(self, error: UnimplementedError, scheme: str) -> UnimplementedError:
        """Return the error with the reasons why plugins do not serve the scheme, and what does."""
        refusals = [
            f"; {reason.message}" + (f". {reason.remedy}" if reason.remedy else "")
            for record in self._known.records(self._registries.schemes)
            for reason in record.reasons
            if reason.scheme == scheme
        ]
        if step := self.next_step(scheme):
            refusals.append(f"; {step}")
        if not refusals:
            return error
        text = error.message + "".join(refusals)
        return UnimplementedError(
            text, plugin=error.plugin, path=error.path, operation=error.operation, rule=error.rule
        )

    # -- instances ------------------------------------------------------------------------------

    def instance(
        self, scheme: str, *, name: str, environment: Mapping[str, str | None]
    ) -> Filesystem:
        """Return one more filesystem of the plugin that serves a scheme, for another account.

        It runs in a worker process with an environment of its own, whatever `Config.isolation`
        says, and is closed with this service. `filesystem` and gfile go on with the plugin itself.

        Args:
            scheme: The scheme.
            name: Names it in lists and messages: 1 to 64 letters, digits, `.`, `_` and `-`; unique
                in this service.
            environment: Variables that its process has besides those of this one, or instead of
                them; None unsets one. No value of a variable with the name of a secret is shown
                anywhere.

        Raises:
            UnimplementedError: None serves the scheme.
            InvalidArgumentError: A Python object serves it, or a name or a variable cannot be.
            AlreadyExistsError: There is an instance of this name.
            UnavailableError: No process can be started, or the plugin does not load in it (LD-144).
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        return self._instances.add(self._plugin_of(scheme), scheme, name, environment)

    def instances(self) -> dict[str, str]:
        """Return the plugins of the instances that are open, by the instance's name. [any thread]

        The names of those that fsspec's storage options asked for begin with `options:`.
        """
        return self._instances.plugins()

    def workers(self) -> list[WorkerRecord]:
        """Return what the worker processes of this service do now, in order of their plugins.

        Those of plugins in workers that nobody has used yet are not started.
        """
        from modular_tf.isolation.worker import workers_of  # noqa: PLC0415  (the native core)

        return workers_of([*self._registries.schemes.serving.values(), *self._instances])

    def shared_instance(self, scheme: str, environment: Mapping[str, str | None]) -> Filesystem:
        """Return the instance with this environment, opened when it is first asked for.

        Raises:
            UnimplementedError: As of `instance`, like the other errors.
        """
        self._lock.check_open()
        return self._instances.shared(self._plugin_of(scheme), scheme, environment)

    def instance_name(self, scheme: str, environment: Mapping[str, str | None]) -> str:
        """Return the name that `shared_instance` gives it, from which no secret can be guessed.

        Raises:
            UnimplementedError: As of `instance`, like the other errors.
        """
        return shared_name(self._plugin_of(scheme), scheme, environment)

    def _plugin_of(self, scheme: str) -> Plugin:
        if not isinstance(scheme, str):
            raise unexpected(scheme, "a scheme", "a text")
        serving = self._registries.schemes.serving.get(scheme)
        if serving is None:
            self._registries.schemes.get(scheme)  # which says why
        owner = "" if serving is None else serving.plugin
        found = next((entry.plugin for entry in self._known if entry.plugin.name == owner), None)
        if found is None:
            text = f"scheme {scheme!r}: a Python object serves it, which has no process of its own"
            raise InvalidArgumentError(text)
        return found

    # -- kernels and operations -----------------------------------------------------------------

    @property
    def kernel_registry(self) -> KernelRegistry:
        """The kernels of all plugins; libraries that bring some are mapped now.

        Raises:
            ClosedError: The service is closed.
            ShortageError: One cannot be mapped now; the next use tries again.
        """
        self._lock.check_open()
        self._registries.operations.open_promised()
        return self._registries.operations.registry

    def kernels(
        self, op: str | None = None, device_type: str | None = None, plugin: str | None = None
    ) -> tuple[KernelRegistration, ...]:
        """Return the kernels that plugins have registered, in order of registration.

        Args:
            op: Those of one operation; of all by default.
            device_type: Those for one type of devices.
            plugin: Those of one plugin, by its name.

        Raises:
            ClosedError: The service is closed.
        """
        return self.kernel_registry.kernels(op, device_type, plugin)

    def op_definitions(self, name: str | None = None) -> tuple[OpDefinition, ...]:
        """Return the definitions of operations, TensorFlow's and plugins' own, by name.

        Args:
            name: That of one operation; all by default.

        Raises:
            NotFoundError: Nobody defines an operation of this name (rule KN-040).
            ClosedError: The service is closed.
        """
        registry = self.kernel_registry
        names = registry.op_names() if name is None else (name,)
        return tuple(registry.definition(each) for each in names)

    def op(self, name: str, label: str = "") -> Op:
        """Return an operation, which works on the device of its inputs.

        Args:
            name: Of the operation.
            label: Which kernels it asks for; "" for ordinary ones.

        Raises:
            NotFoundError: Nobody defines it (rule KN-040).
            ClosedError: The service is closed.
        """
        self._lock.check_open()
        return self._registries.operations.op(name, label)

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

        Memory regions that are still viewed keep their filesystem until the last view is gone.

        Where an interrupt of the main thread or `close_timeout_s` of the configuration ends the
        wait, plugins are still closed, by a thread, so that no data are lost; the next call waits
        for it again, and the end of the process until it is done.

        Raises:
            DeadlineExceededError: Plugins, which it names, were not closed in time; or an
                asynchronous kernel whose call was interrupted was not done two seconds later: what
                it may use of its device is never freed then.
            ModularTFError: The first failure; the rest was closed all the same.
        """
        timeout = self.config.close_timeout_s
        aside = timeout is not None or (is_main_thread() and not holds_lock())
        if aside and not self._is_ended and not is_awaited():
            self._close_aside(timeout)
        self._close(at_exit=False)  # what a thread has done already is done
        # In place: another thread that closes it may be about to add to the list.
        failures, self._failures[:] = self._failures[:], []
        if failures:
            raise failures[0]

    def _close_aside(self, timeout: float | None) -> None:
        """Close on a thread, which the end of the process waits for; wait for it."""
        work = self._closing
        if work is None or work.is_over:
            close = partial(self._close, at_exit=False)
            try:
                work = self._closing = Work(close, "close of a service", daemon=False)
            except ResourceExhaustedError:
                return
        if not work.wait(timeout):
            assert timeout is not None  # noqa: S101
            raise not_closed_in_time([entry.plugin.name for entry in self._unclosed], timeout)
        work.outcome()

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
