"""Instances: filesystems of a plugin with an environment of their own, each in a worker process.

A plugin reads its account from the environment when it is first used, so one process has one
account of each store. An instance is one more, beside the plugin that serves the scheme.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import Worker as WorkingThread
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
    UnavailableError,
    collected,
)
from modular_tf.redaction import hide, names_secret, show_again
from modular_tf.rules.first_contact import WORKER_STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.isolation.worker import Worker
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

    Environment = Mapping[str, str | None]

# Compiled at their first use: most services have no instance.
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_CLOSED_AT_ONCE = 128
_SHORTEST_PAUSE_S = 0.05
_OF_THIS_PROCESS = os.urandom(32)  # so that nobody guesses a secret from a name that is listed


class _Shared:
    """A shared instance, stored while its process runs. Changed under the owner's lock.

    `filesystem` is None when the process was ended because nobody used it. Code that still has the
    instance may go on: its next call starts another process.
    """

    def __init__(self, filesystem: PluginFilesystem) -> None:
        self.filesystem: PluginFilesystem | None = filesystem
        self._reference = weakref.ref(filesystem)
        self._calls = 0
        self._used = time.monotonic()

    def find(self) -> PluginFilesystem | None:
        """Return the instance if it is referred to, and nobody has closed it."""
        found = self._reference()
        return found if found is not None and _is_open(found) else None

    def use(self, filesystem: PluginFilesystem) -> None:
        """Record that it is used now."""
        self.filesystem = filesystem
        self._used = time.monotonic()

    def idle_s(self, filesystem: PluginFilesystem) -> float:
        """Return for how many seconds it is unused; a call since the last check counts as now."""
        calls, in_flight = _worker(filesystem).calls()
        if calls != self._calls or in_flight or filesystem.is_in_use:
            self._calls = calls
            self._used = time.monotonic()
        return time.monotonic() - self._used

    def begin_rest(self, filesystem: PluginFilesystem) -> Callable[[], object] | None:
        """Begin to end its process, as `Worker.begin_rest`; None where it is in use."""
        worker = _worker(filesystem)
        calls, _ = worker.calls()
        if filesystem.is_in_use:  # a file that is just opened is in no list yet
            return None
        ended = worker.begin_rest(calls)
        if ended is not None:
            self.filesystem = None
        return ended


class Instances:
    """The instances of one service. [any thread]

    Those with a name belong to their users. Those that are shared have a process while they are
    used: a thread, which exists while there are any, ends it after `Config.instance_idle_s`; and
    where there are `Config.most_instances`, the process of the one that is unused for longest is
    ended.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = ForkLock()
        self._named: dict[str, PluginFilesystem] = {}
        self._shared: dict[str, _Shared] = {}
        # A lock for each that is being made lives while the thread that makes it refers to it. So
        # nothing is left of one whose thread was interrupted.
        self._making: weakref.WeakValueDictionary[str, ForkLock] = weakref.WeakValueDictionary()
        self._being_made: weakref.WeakSet[ForkLock] = weakref.WeakSet()  # of the shared ones
        self._thread = WorkingThread()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._is_closed = False

    def add(
        self, plugin: Plugin, scheme: str, name: str, environment: Environment
    ) -> PluginFilesystem:
        """Open an instance; see `PluginService.instance`."""
        if not (isinstance(name, str) and re.fullmatch(_NAME, name)):
            text = f"instance {name!r}: expected 1 to 64 letters, digits, '.', '_' and '-'"
            raise InvalidArgumentError(text, plugin=plugin.name)
        _check_environment(name, environment)
        made, making = None, ForkLock()
        try:
            with self._lock:
                for other in [n for n, found in self._named.items() if not _is_open(found)]:
                    del self._named[other]
                if name in self._named or name in self._making:
                    text = f"instance {name!r}: this service has one of that name;"
                    text += " choose another name"
                    raise AlreadyExistsError(text, plugin=plugin.name)  # noqa: TRY301
                self._require_open()
                self._making[name] = making
            made = _opened(plugin, self._config, scheme, name, environment)
            with self._lock:
                self._require_open()
                self._named[name] = made
                self._making.pop(name, None)  # a child that a signal handler forked has none
            return made  # noqa: TRY300  (behind the block an interrupt would lose it)
        except BaseException:
            with self._lock:
                if self._making.get(name) is making:
                    del self._making[name]
            if made is not None:
                made.close()
            raise

    def shared(self, plugin: Plugin, scheme: str, environment: Environment) -> PluginFilesystem:
        """Return the instance with this environment, opened when it is first asked for."""
        _check_environment("options", environment)
        name = shared_name(plugin, scheme, environment)
        with self._lock:
            making = self._making.get(name)
            if making is None:
                making = self._making[name] = ForkLock()
        with making:  # another thread that asks for the same one waits for this
            with self._lock:
                self._require_open()
                shared = self._shared.get(name)
                found = None if shared is None else shared.find()
                if shared is not None and found is not None and shared.filesystem is not None:
                    shared.use(found)
                    self._watch_idle()
                    return found
            return self._share(plugin, scheme, name, environment, found, making)

    def _share(
        self,
        plugin: Plugin,
        scheme: str,
        name: str,
        environment: Environment,
        rested: PluginFilesystem | None,
        making: ForkLock,
    ) -> PluginFilesystem:
        made = None
        try:
            self._end_excess(plugin.name, making)
            if rested is None:
                made = _opened(plugin, self._config, scheme, name, environment)
                _worker(made).before_restart = partial(_end_excess_for, weakref.ref(self), name)
            found = rested or made
            assert found is not None  # noqa: S101
            with self._lock:
                self._require_open()
                self._shared[name] = _Shared(found)
                self._watch_idle()
        except BaseException:
            if made is not None:
                made.close()
            raise
        finally:
            self._being_made.discard(making)
        return found

    def end_excess_for(self, name: str) -> None:
        """As `_end_excess`, for a shared one whose process ended and is started again."""
        with self._lock:
            shared = self._shared.get(name)
            filesystem = None if shared is None else shared.find()
        if shared is not None and filesystem is not None:
            self._end_excess(filesystem.plugin, shared)

    def _end_excess(self, plugin: str, wanted: ForkLock | _Shared) -> None:
        """End processes of others where there are too many with one more, and count that.

        `wanted` is the lock of one that is made, or one whose process is started again.
        """
        most = self._config.most_instances
        ended: list[Callable[[], object]] = []
        with self._lock:
            running = [one for one in self._running() if one[1] is not wanted]
            excess = len(running) + 1 - most
            if isinstance(wanted, ForkLock):  # one that is in use waits for none that is made
                excess += len(self._being_made)
            for _, shared, filesystem in sorted(running, key=lambda one: -one[0]):
                if len(ended) >= excess:
                    break
                if (wait := shared.begin_rest(filesystem)) is not None:
                    ended.append(wait)
            is_full = len(ended) < excess
            if not is_full:
                if isinstance(wanted, ForkLock):
                    self._being_made.add(wanted)
                elif (again := wanted.find()) is not None:
                    wanted.use(again)
        for wait in ended:
            wait()
        if is_full:
            raise ResourceExhaustedError(
                f"{most} instances for storage options run, and all have calls under way or"
                f" open files; try again when some have ended, or raise `most_instances` in"
                f" {self._config.origin}",
                plugin=plugin,
            )

    def _running(self) -> list[tuple[float, _Shared, PluginFilesystem]]:
        """Return the shared ones that have a process, each with how long it has been idle."""
        found = []
        for name, shared in list(self._shared.items()):
            filesystem = shared.find()
            if filesystem is None:  # nobody refers to it, or it was closed
                del self._shared[name]
                continue
            idle_s = shared.idle_s(filesystem)  # before the next look, since it looks
            if shared.filesystem is not None:
                found.append((idle_s, shared, filesystem))
        return found

    def _watch_idle(self) -> None:
        """Start the thread that ends idle processes, unless it runs. Called with the lock."""
        # Where no thread can be had, the next one that is asked for tries again.
        with suppress(ResourceExhaustedError):
            self._thread.ensure(self._end_idle, "modular_tf-instances")

    def _end_idle(self) -> None:
        """End the processes of shared instances that are idle. [its own thread]"""
        while True:
            with self._lock:
                if not self._thread.is_current:
                    return
                if self._is_closed or not self._shared:
                    self._thread.leave()
                    return
                seconds, ended = self._end_idle_processes()
            for wait in ended:
                wait()
            with suppress(Empty):
                self._wakes.get(timeout=seconds)

    def _end_idle_processes(self) -> tuple[float, list[Callable[[], object]]]:
        """End idle processes; return the seconds to the next check, and what waits for the ends."""
        most = self._config.instance_idle_s
        next_check = most
        ended: list[Callable[[], object]] = []
        running = sorted(self._running(), key=lambda one: -one[0])
        excess = len(running) - self._config.most_instances
        for idle_s, shared, filesystem in running:
            ends = idle_s >= most or len(ended) < excess
            wait = shared.begin_rest(filesystem) if ends else None
            if wait is not None:
                ended.append(wait)
            else:
                next_check = min(next_check, most - idle_s)
        return max(next_check, most / 10, _SHORTEST_PAUSE_S), ended

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the plugin service is closed")

    def plugins(self) -> dict[str, str]:
        """Return the plugins of those that are open, by name; of shared ones, those that run."""
        return {name: found.plugin for name, found in sorted(self._open().items())}

    def __iter__(self) -> Iterator[PluginFilesystem]:
        """Return those that are open, as `plugins`."""
        return iter(self._open().values())

    def _open(self) -> dict[str, PluginFilesystem]:
        with self._lock:
            shared = {name: shared.filesystem for name, shared in self._shared.items()}
            found = {**self._named, **shared}
        return {n: one for n, one in found.items() if one is not None and _is_open(one)}

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close all of them at once, and open none any more; safe to call twice."""
        with self._lock:
            self._is_closed = True
            found = [*self._named.values(), *(shared.find() for shared in self._shared.values())]
        self._wakes.put(None)
        left = [filesystem for filesystem in found if filesystem is not None]

        def close(filesystem: PluginFilesystem) -> None:
            with collected(failures):
                filesystem.close(at_exit=at_exit)

        for outcome in Crew(min(len(left), _CLOSED_AT_ONCE)).run(close, left):
            outcome.get()
        with self._lock:
            self._named.clear()
            self._shared.clear()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._making.clear()  # the threads that made them stayed in the parent
        self._being_made.clear()
        self._wakes = SimpleQueue()
        shared = [one.find() for one in list(self._shared.values())]
        for filesystem in (*list(self._named.values()), *shared):
            if filesystem is not None:
                with collected([]):
                    filesystem.after_fork_in_child()


def _end_excess_for(instances: Callable[[], Instances | None], name: str) -> None:
    """End processes of the instances that a weak reference gives."""
    if (found := instances()) is not None:
        found.end_excess_for(name)


def _worker(filesystem: PluginFilesystem) -> Worker:
    from modular_tf.isolation.worker import worker_of  # noqa: PLC0415  (the native core)

    worker = worker_of(filesystem)
    assert worker is not None  # noqa: S101  (an instance has one)
    return worker


def _is_open(filesystem: PluginFilesystem) -> bool:
    return _worker(filesystem).is_used


def _opened(
    plugin: Plugin, config: Config, scheme: str, name: str, environment: Environment
) -> PluginFilesystem:
    from modular_tf.filesystem.opening import open_filesystem  # noqa: PLC0415  (the native core)
    from modular_tf.service.library_loading import load_in_worker  # noqa: PLC0415  (likewise)

    owner = object()
    hide(owner, _secrets(environment))
    try:
        worker, found, offer = load_in_worker(
            plugin, config, instance=name, environment=environment
        )
        tables = next((each for each in found if each.scheme == scheme), None)
        if tables is None:
            worker.leave()
            reasons = [n.message for n in offer.finding.notes if n.scheme in (scheme, None)]
            why = "; ".join(reasons) or "the plugin does not offer it"
            text = f"instance {name!r}: scheme {scheme!r} cannot be served: {why}"
            raise UnavailableError(text, plugin=plugin.name, rule=WORKER_STARTS.id)  # noqa: TRY301
        filesystem = open_filesystem(
            tables,
            plugin=plugin.name,
            path=plugin.path,
            bundled=plugin.is_bundled,
            guarded=offer.guarded,
        ).filesystem
    except BaseException:
        show_again(owner)
        raise
    weakref.finalize(filesystem, show_again, owner).atexit = False
    return filesystem


def _check_environment(name: str, environment: Environment) -> None:
    """Refuse what no process can have; messages show no value."""
    if not isinstance(environment, Mapping):
        text = f"instance {name!r}: environment: expected a mapping of variables to values"
        raise InvalidArgumentError(f"{text}, found {type(environment).__name__}")
    for variable, value in environment.items():
        if not (isinstance(variable, str) and re.fullmatch(_VARIABLE, variable)):
            text = f"instance {name!r}: expected names of variables, found {variable!r}"
            raise InvalidArgumentError(text)
        if value is not None and not (isinstance(value, str) and "\0" not in value):
            kind = "a text with a zero byte" if isinstance(value, str) else type(value).__name__
            expected = f"{variable}: expected a text, or None to unset it, found {kind}"
            raise InvalidArgumentError(f"instance {name!r}: {expected}")


def _secrets(environment: Environment) -> Iterator[str]:
    for variable, value in environment.items():
        if value and names_secret(variable) and not os.path.exists(value):
            yield value


def shared_name(plugin: Plugin, scheme: str, environment: Environment) -> str:
    """Return the name of a shared instance, from which its environment cannot be guessed."""
    from hashlib import blake2b  # noqa: PLC0415  (loads OpenSSL; most services share none)

    digest = blake2b(key=_OF_THIS_PROCESS, digest_size=8)
    parts = (
        plugin.name,
        scheme,
        # A library that was replaced is another one: its instances serve those who hold them.
        *(f"{seen.path}={seen.sha256 or seen.identity}" for seen in plugin.checked),
        *(f"{k}={v}" for k, v in sorted(environment.items()) if v is not None),
    )
    unset = sorted(variable for variable, value in environment.items() if value is None)
    for part in (*parts, "", *unset):
        digest.update(f"{len(part)}:{part}".encode("utf-8", "surrogateescape"))
    return f"options:{digest.hexdigest()}"
