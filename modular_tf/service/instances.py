"""Instances: filesystems of a plugin with an environment of their own, each in a worker process.

A plugin reads its account from the environment when it is first used, so one process has one
account of each store. An instance is one more, beside the plugin that serves the scheme.
"""

from __future__ import annotations

import os
import re
import weakref
from typing import TYPE_CHECKING, NoReturn

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    UnavailableError,
    collected,
)
from modular_tf.redaction import hide, show_again
from modular_tf.rules.worker import WORKER_STARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.rules import Violation
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

    Environment = Mapping[str, str | None]

# Compiled at their first use: most services have no instance.
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
# What a variable's name says of its value. A file's name is none, and messages need it.
_TELLING = r"(?i)KEY|SECRET|TOKEN|PASSW|CREDENTIAL|SAS|SIGNATURE|CONNECTION_STRING"
_OF_THIS_PROCESS = os.urandom(32)  # so that nobody guesses a secret from a name that is listed


class Instances:
    """The instances of one service. [any thread]

    Args:
        config: What the user decided.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = ForkLock()
        self._open: dict[str, PluginFilesystem | None] = {}  # None while it is made
        self._making: dict[str, ForkLock] = {}
        self._is_closed = False

    def add(
        self, plugin: Plugin, scheme: str, name: str, environment: Environment
    ) -> PluginFilesystem:
        """Open an instance; see `PluginService.instance`."""
        if not re.fullmatch(_NAME, name):
            text = f"instance {name!r}: expected 1 to 64 letters, digits, '.', '_' and '-'"
            raise InvalidArgumentError(text, plugin=plugin.name)
        _check_environment(name, environment)
        return self._add(plugin, scheme, name, environment)

    def shared(self, plugin: Plugin, scheme: str, environment: Environment) -> PluginFilesystem:
        """Return the instance with this environment, opened when it is first asked for."""
        name = shared_name(plugin, scheme, environment)
        _check_environment(name, environment)
        with self._lock:
            making = self._making.setdefault(name, ForkLock())
        with making:  # another thread that asks for the same one waits for this
            found = self._open.get(name)
            return found if found is not None else self._add(plugin, scheme, name, environment)

    def _add(
        self, plugin: Plugin, scheme: str, name: str, environment: Environment
    ) -> PluginFilesystem:
        with self._lock:
            if name in self._open:
                text = f"instance {name!r}: this service has one of that name; choose another name"
                raise AlreadyExistsError(text, plugin=plugin.name)
            self._keep(name, None)
        made = None
        try:
            made = _opened(plugin, self._config, scheme, name, environment)
            self._keep(name, made)
        except BaseException:
            with self._lock:
                self._open.pop(name, None)
            if made is not None:
                made.close()
            raise
        return made

    def _keep(self, name: str, made: PluginFilesystem | None) -> None:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the plugin service is closed")
            self._open[name] = made

    def plugins(self) -> dict[str, str]:
        """Return the plugins of those that are open, by name."""
        return {n: f.plugin for n, f in sorted(self._open.items()) if f is not None}

    def __iter__(self) -> Iterator[PluginFilesystem]:
        return iter([found for found in list(self._open.values()) if found is not None])

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close all of them, and open none any more; safe to call twice."""
        with self._lock:
            self._is_closed = True
        for filesystem in self:
            with collected(failures):
                filesystem.close(at_exit=at_exit)
        self._open.clear()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for name in [name for name, found in list(self._open.items()) if found is None]:
            self._open.pop(name, None)  # the thread that made it stayed in the parent
        for filesystem in self:
            with collected([]):
                filesystem.after_fork_in_child()


def _opened(
    plugin: Plugin, config: Config, scheme: str, name: str, environment: Environment
) -> PluginFilesystem:
    from modular_tf.filesystem.opening import open_filesystem  # noqa: PLC0415  (the native core)
    from modular_tf.service.isolated_plugin import load_in_worker  # noqa: PLC0415  (likewise)

    owner = object()
    hide(owner, _secrets(environment))
    try:
        loaded = load_in_worker(plugin, config, instance=name, environment=environment)
        tables = next((found for found in loaded.tables if found.scheme == scheme), None)
        if tables is None:
            loaded.worker.leave()
            _raise_unserved(plugin, scheme, name, loaded.notes)
        filesystem = open_filesystem(
            tables,
            plugin=plugin.name,
            path=plugin.path,
            bundled=plugin.is_bundled,
            guarded=loaded.guarded,
        ).filesystem
    except BaseException:
        show_again(owner)
        raise
    weakref.finalize(filesystem, show_again, owner).atexit = False
    return filesystem


def _raise_unserved(plugin: Plugin, scheme: str, name: str, notes: Iterable[Violation]) -> NoReturn:
    reasons = [note.message for note in notes if note.scheme in (scheme, None)]
    why = "; ".join(reasons) or "the plugin does not offer it"
    text = f"instance {name!r}: scheme {scheme!r} cannot be served: {why}"
    raise UnavailableError(text, plugin=plugin.name, rule=WORKER_STARTS.id)


def _check_environment(name: str, environment: Environment) -> None:
    """Refuse what no process can have; no value is told.

    Raises:
        InvalidArgumentError: It names the variable.
    """
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
        if value and re.search(_TELLING, variable) and not os.path.exists(value):
            yield value


def shared_name(plugin: Plugin, scheme: str, environment: Environment) -> str:
    """Return the name of a shared instance, from which its environment cannot be guessed."""
    from hashlib import blake2b  # noqa: PLC0415  (loads OpenSSL; most services share none)

    digest = blake2b(key=_OF_THIS_PROCESS, digest_size=8)
    parts = (
        plugin.name,
        scheme,
        *(f"{k}={v}" for k, v in sorted(environment.items()) if v is not None),
    )
    unset = sorted(variable for variable, value in environment.items() if value is None)
    for part in (*parts, "", *unset):
        digest.update(f"{len(part)}:{part}".encode("utf-8", "surrogateescape"))
    return f"options:{digest.hexdigest()}"
