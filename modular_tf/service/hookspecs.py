"""What an installed package may do to a service: pluggy hooks.

A package announces an object or module with these functions under the entry point group
`modular_tf.hooks`, or the application passes it to `PluginService(hooks=[...])`; each function is
marked with `modular_tf.hookspecs.hookimpl`. All of them are called together: the application's own
first, then those of installed packages, as `tryfirst`, `trylast` and wrappers have it. One that
raises counts as one that returned None; a veto that raises forbids the plugin.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import pluggy

from modular_tf.service.report import HookFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.probe import Probe
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginChange, PluginRecord

    Wrapper = Generator[None, Any, Any]
    Note = Callable[[str, Exception], str]

PROJECT = "modular_tf"
ENTRY_POINT_GROUP = "modular_tf.hooks"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def modular_tf_plugin_paths(config: Config) -> Iterable[str]:  # type: ignore[empty-body]
    """Return files or directories to search too, with the precedence of configured ones."""


@hookspec(firstresult=True)
def modular_tf_veto(candidate: Candidate, probe: Probe) -> str | None:
    """Return why a candidate must not be loaded, None to let it pass. Nothing of it has run.

    The first reason ends the call.
    """


@hookspec
def modular_tf_filesystems() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return filesystems by scheme, of any kind that `PluginService.register_filesystem` takes."""


@hookspec
def modular_tf_device_factories() -> Iterable[Any]:  # type: ignore[empty-body]
    """Return device factories to register (`modular_tf.device.factory.DeviceFactory`)."""


@hookspec
def modular_tf_outcome(record: PluginRecord) -> None:
    """Take note of what became of a plugin."""


@hookspec
def modular_tf_change(change: PluginChange) -> None:
    """Take note of a plugin file that came, was replaced or went while the service runs."""


# -- functions that pluggy can call together -------------------------------------------------------
#
# pluggy ends a call at the first exception and throws it into the wrappers. Here a function that
# raises counts as one that returned None, and a wrapper that raises as one that changed nothing. So
# the answers of the others remain, and the failure has the name of its implementation.


_VETO = "modular_tf_veto"


class _Guard(NamedTuple):
    """Makes safe values of the answers and exceptions of one implementation's hook function.

    `note` stores what failed with which error, and returns the sentence about it.
    """

    hook: str
    implementation: str
    note: Note

    def plain(self, answer: Any) -> Any:
        """Return the plain value of an answer, which may be a generator that raises."""
        make = _PLAIN.get(self.hook)  # none where nobody wants the answer
        return None if answer is None or make is None else make(answer)

    def plain_result(self, result: Any) -> Any:
        """Return the plain value of what a wrapper makes of the answers of others."""
        if self.hook == _VETO:  # the only hook with a single answer
            return self.plain(result)
        return [self.plain(answer) for answer in result or () if answer is not None]

    def failed(self, error: Exception) -> str | None:
        """Record a failure, and return what counts as the answer."""
        sentence = self.note(f"{self.hook} of {self.implementation}", error)
        return sentence if self.hook == _VETO else None

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that answers like another and does not raise."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return self.plain(function(*arguments, **named))
            except Exception as error:  # noqa: BLE001  (users' code: it may raise anything)
                return self.failed(error)

        return call

    def wrapper(self, function: Callable[..., Wrapper]) -> Callable[..., Wrapper]:
        """Return a wrapper that does what another does and does not raise.

        Where the other one fails, the answers that it was given remain.
        """

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Wrapper:
            steps: Wrapper | None = None
            failure: Exception | None = None
            try:
                steps = function(*arguments, **named)
                _begin(steps)
            except Exception as error:  # noqa: BLE001
                steps, failure = None, error
            try:
                result = yield
            except BaseException:  # an interrupt ends the call
                _abandon(steps)
                raise
            if steps is not None:
                try:
                    # A copy: what a wrapper does to it before it fails changes nothing.
                    return self.plain_result(_end(steps, self.plain_result(result)))
                except Exception as error:  # noqa: BLE001
                    failure = error
            answer = None if failure is None else self.failed(failure)
            return answer if result is None else result

        return call


def empty_manager() -> pluggy.PluginManager:
    """Return a manager that knows the hooks and no implementation."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(sys.modules[__name__])
    return manager


def guarded(implementation: object, name: str, note: Note) -> object:
    """Return an object with the hook functions of another, none of which raises.

    A function that is not that of a known hook, or takes what the hook does not give, is an error.
    """
    manager = empty_manager()
    manager.register(implementation)
    manager.check_pending()
    made = _GuardedImplementation()
    for caller in manager.get_hookcallers(implementation) or ():
        guard = _Guard(caller.name, name, note)
        for number, found in enumerate(caller.get_hookimpls()):
            setattr(made, f"{caller.name}_{number}", _marked(found, guard))
    return made


class _GuardedImplementation:
    """The guarded functions of one implementation, as attributes, for pluggy to find."""


def _marked(found: pluggy.HookImpl, guard: _Guard) -> Callable[..., Any]:
    """Return a guarded function with the mark of the function that it guards."""
    if found.hookwrapper:
        raise TypeError(f"{guard.hook}: hookwrapper=True is not supported; use wrapper=True")
    mark = hookimpl(
        specname=guard.hook,
        tryfirst=found.tryfirst,
        trylast=found.trylast,
        optionalhook=found.optionalhook,
        wrapper=found.wrapper,
    )
    function: Callable[..., Any] = found.function
    return mark(guard.wrapper(function) if found.wrapper else guard.function(function))


def _begin(steps: Wrapper) -> None:
    """Run a wrapper up to its `yield`."""
    try:
        next(steps)
    except StopIteration:
        raise RuntimeError("the wrapper does not yield") from None


def _abandon(steps: Wrapper | None) -> None:
    """Let a wrapper clean up, without its answer; what it raises must not replace an interrupt."""
    if steps is not None:
        with suppress(Exception):
            steps.close()


def _end(steps: Wrapper, result: Any) -> Any:
    """Run a wrapper from its `yield` to the end, and return what it returns."""
    try:
        steps.send(result)
    except StopIteration as end:
        return end.value
    steps.close()
    raise RuntimeError("the wrapper yields twice")


def functions_of(manager: pluggy.PluginManager) -> Iterator[HookFunction]:
    """Yield the functions of all implementations, by hook, in the order in which they are called.

    A wrapper is called before the functions that it wraps.
    """
    for hook in (name for name in globals() if name.startswith(f"{PROJECT}_")):
        for found in reversed(getattr(manager.hook, hook).get_hookimpls()):
            orders = {"tryfirst": found.tryfirst, "trylast": found.trylast}
            order = next((name for name, is_set in orders.items() if is_set), None)
            yield HookFunction(hook, found.plugin_name, order, wrapper=found.wrapper)


def _path_list(answer: Any) -> list[str]:
    """Return the paths of an answer, which may be one path instead of a list of them."""
    paths: Sequence[Any] = [answer] if isinstance(answer, str | bytes | os.PathLike) else answer
    return [os.fsdecode(path) for path in paths]


_PLAIN: dict[str, Callable[[Any], Any]] = {
    _VETO: str,
    "modular_tf_plugin_paths": _path_list,
    "modular_tf_filesystems": dict,
    "modular_tf_device_factories": list,
}
