"""Calling the hooks, so that a broken one stops nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from modular_tf.discovery.search import unused_name
from modular_tf.discovery.sources.installed import Installation, entries_of_group
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.events import EventLog
from modular_tf.events.event_log import deliver
from modular_tf.rules import Violation
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pluggy

    from modular_tf.discovery.probe import Probe
    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import HookFunction, PluginChange, PluginRecord

_GROUP = "modular_tf.hooks"  # hookspecs.ENTRY_POINT_GROUP, whose module imports pluggy
_MOST_FAILURES = 100
_log = EventLog("hooks")


class _Asking(threading.local):
    """The names of the hooks that a thread is asking, one from within the other."""

    def __init__(self) -> None:
        self.asked: frozenset[str] = frozenset()


class Hooks:
    """The hook implementations of one service. Without any, pluggy is not even imported.

    Installed ones are searched for when something is asked of hooks first. They share one manager
    of pluggy, so `tryfirst`, `trylast`, wrappers and `firstresult` count for all of them. They are
    called in the order in which they were given, then in that of the installed distributions. One
    that fails takes no answer of another with it (`hookspecs.guarded`). Hooks that
    answer are called without our locks, as they are users' code. Hooks that only receive an event
    are called when the thread holds none (`modular_tf.events.event_log.deliver`). [any thread]

    A hook that uses the service while it is asked is not asked again for that: what the service
    then does is done without its answer, and once more with it. `given` are objects that the
    application passed. Where `trust` has plugins frozen, hooks of installed packages are.
    """

    def __init__(
        self,
        given: Sequence[object],
        python_path: Callable[[], Sequence[str]],
        trust: TrustPolicy,
    ) -> None:
        self._failures: dict[str, Violation] = {}
        self._given = tuple(given)
        self._python_path = python_path
        self._judge = TrustJudge(trust) if trust.frozen else None
        self._manager: pluggy.PluginManager | None = None  # None also where there is no hook
        self._is_found = False
        self._of_thread = _Asking()

    def find(self, installation: Installation) -> None:
        """Find the implementations, given and installed, unless that was done before."""
        if self._is_found:
            return
        named = [(_name_of(given), given) for given in self._given]
        for distribution in installation.distributions:
            named += self._brought(installation, distribution)
        manager = self._manager_of(_distinct(named)) if named else None
        if not self._is_found:  # another thread may have been faster
            self._manager = manager
            self._is_found = True

    @property
    def failures(self) -> tuple[Violation, ...]:
        """What failed in hooks, each for the first time, in that order; the log has all."""
        return tuple(self._failures.values())

    @property
    def are_none(self) -> bool:
        """Whether there is no hook; False before they were searched for."""
        return self._is_found and self._manager is None

    def is_asking(self, *hooks: str) -> bool:
        """Return whether this thread comes from one of these hooks, which is being asked."""
        return not self._of_thread.asked.isdisjoint(hooks)

    def functions(self) -> tuple[HookFunction, ...]:
        """Return the functions that were found, by hook, in the order in which they are called."""
        if self._manager is None:
            return ()
        from modular_tf.service.hookspecs import functions_of  # noqa: PLC0415  (imports pluggy)

        return tuple(functions_of(self._manager))

    def _brought(
        self, installation: Installation, distribution: InstalledDistribution
    ) -> Iterator[tuple[str, object]]:
        """Load a distribution's hook objects: the only code that discovery imports, by consent."""
        try:
            found = _entries(installation, distribution)
        except Exception as error:  # noqa: BLE001  (an installation may be broken in any way)
            raise_shortage(error)  # its veto would be missing for good
            self.note(f"reading the hooks of {distribution.label}", error)
            return
        for name, value in found:
            try:
                implementation = self._load(value)
            except Exception as error:  # noqa: BLE001  (users' code: it may raise anything)
                raise_shortage(error)
                self.note(f"loading {name}", error)
            else:
                yield name, implementation

    def _load(self, value: str) -> object:
        """Import what an entry point names, where plugins are frozen only if it is locked."""
        refusal = None if self._judge is None else self._judge.refusal_of_hook(value)
        if refusal is not None:
            raise refusal.error(PluginError)
        from importlib_metadata import EntryPoint  # noqa: PLC0415  (costly)

        return EntryPoint("", value, _GROUP).load()

    def _manager_of(self, named: Iterable[tuple[str, object]]) -> pluggy.PluginManager:
        """Return a manager with implementations, which it calls in this order."""
        # Most services have no hooks, and this imports pluggy.
        from modular_tf.service.hookspecs import empty_manager, guarded  # noqa: PLC0415

        accepted = []
        for name, implementation in named:
            try:
                accepted.append((name, guarded(implementation, name, self.note)))
            except Exception as error:  # noqa: BLE001  (likewise)
                self.note(f"adding {name}", error)
        manager = empty_manager()
        for name, implementation in reversed(accepted):  # pluggy calls the last one first
            manager.register(implementation, name)
        return manager

    def plugin_paths(self, config: Config) -> list[str]:
        """Return the paths that hooks add."""
        answers = self._answers("modular_tf_plugin_paths", config=config)
        return [path for paths in answers for path in paths]

    def veto(self, probe_of: Callable[[], Probe]) -> str | None:
        """Return why a hook forbids a plugin; a hook that fails forbids it, to be safe.

        The probe is made only where somebody may want it, as the record of `outcome`.
        """
        self._find()
        if not self._may_call("modular_tf_veto"):
            return None
        probe = probe_of()
        reason: str | None = self._call("modular_tf_veto", candidate=probe.candidate, probe=probe)
        return reason

    def filesystems(self) -> Iterator[tuple[str, Any]]:
        """Yield schemes and filesystems that hooks bring."""
        for mapping in self._answers("modular_tf_filesystems"):
            yield from mapping.items()

    def device_factories(self) -> Iterator[Any]:
        """Yield device factories that hooks bring."""
        for factories in self._answers("modular_tf_device_factories"):
            yield from factories

    def outcome(self, record_of: Callable[[], PluginRecord]) -> None:
        """Report to the hooks what became of a plugin."""
        if self._may_call("modular_tf_outcome"):
            deliver(partial(self._call, "modular_tf_outcome", record=record_of()))

    def changed(self, change: PluginChange) -> None:
        """Report to the hooks what became of a change on disk."""
        deliver(partial(self._call, "modular_tf_change", change=change))

    def _find(self) -> None:
        if not self._is_found:
            self.find(Installation(self._python_path()))

    def _may_call(self, hook: str) -> bool:
        """Return whether there is an implementation of a hook, or no search for any yet."""
        if self._manager is None:
            return not self._is_found
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    def _answers(self, hook: str, **arguments: Any) -> list[Any]:
        return self._call(hook, **arguments) or []

    def _call(self, hook: str, **arguments: Any) -> Any:
        """Call one hook of all implementations, which do not raise, and return what they return."""
        outer = self._of_thread.asked
        if hook in outer:
            return None
        try:
            self._of_thread.asked = outer | {hook}
            self._find()
            if self._manager is None:
                return None
            return getattr(self._manager.hook, hook)(**arguments)
        finally:
            self._of_thread.asked = outer

    def note(self, what: str, error: Exception) -> str:
        """Record a failure for the report, and return the sentence about it."""
        if isinstance(error, ModularTFError):
            found = Violation.of_error(error, "hooks")
        else:
            found = Violation(None, _text_of(error), "hooks")
        sentence = f"{what} failed: {found.message}"
        if len(self._failures) < _MOST_FAILURES:
            self._failures.setdefault(sentence, replace(found, message=sentence))
        _log.warning("hook.failed", what=what, error=_text_of(error))
        return sentence


def installed_hooks(python_path: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each hook that installed packages bring; none is imported."""
    installation = Installation(python_path)
    for distribution in installation.distributions:
        try:
            found = _entries(installation, distribution)
        except (OSError, ValueError) as error:  # whoever calls the hooks reports it
            raise_shortage(error)
        else:
            yield from found


def _entries(
    installation: Installation, distribution: InstalledDistribution
) -> list[tuple[str, str]]:
    """Return name and value of each hook of a distribution."""
    content = installation.entry_points(distribution)
    if _GROUP.encode() not in content:
        return []
    found = entries_of_group(content, _GROUP)
    return [(f"{distribution.label}: {name}", value) for name, value in found]


def _name_of(given: object) -> str:
    """Return the name of an object that the application passed: a class's, or a module's."""
    name = given.__name__ if isinstance(given, type | ModuleType) else type(given).__name__
    return str(name)


def _distinct(named: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Yield each object once, and under a name that no other has."""
    seen: dict[str, object] = {}
    for name, implementation in named:
        if any(implementation is other for other in seen.values()):
            continue
        unused = unused_name(name, seen)
        seen[unused] = implementation
        yield unused, implementation


def _text_of(error: Exception) -> str:
    try:
        return repr(error)
    except Exception:  # noqa: BLE001  (likewise)
        return type(error).__name__
