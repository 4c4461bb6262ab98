"""Calling the hooks, so that a broken one stops nothing."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.sources.entry_point_file import entries_of_group
from modular_tf.discovery.sources.installed import Installation
from modular_tf.errors import ModularTFError
from modular_tf.events import EventLog
from modular_tf.events.delivery import deliver
from modular_tf.rules import Violation
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pluggy

    from modular_tf.discovery.probe import Probe
    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginChange, PluginRecord

_GROUP = "modular_tf.hooks"  # hookspecs.ENTRY_POINT_GROUP, whose module imports pluggy
_log = EventLog("hooks")


class _Implementation(NamedTuple):
    """An object with hook functions, and what calls them."""

    name: str
    given: object
    hook: pluggy.HookRelay


class _Asking(threading.local):
    """The names of the hooks that a thread is asking, one from within the other."""

    def __init__(self) -> None:
        self.asked: frozenset[str] = frozenset()


class Hooks:
    """The hook implementations of one service. Without any, pluggy is not even imported.

    Installed ones are looked for when something is asked of hooks first. Each implementation is
    called by itself, the application's own first, so that one that fails takes no answer of another
    with it. Those that answer are not for a lock of ours: they are users' code. Those that are told
    something are called when the thread holds none (`modular_tf.events.delivery`). [any thread]

    A hook that uses the service while it is asked is not asked again for that: what the service
    then does is done without its answer, and once more with it.

    Args:
        given: Objects that the application passed.
        python_path: Returns where installed packages are looked for.

    Attributes:
        failures: What went wrong in hooks, in the order it happened.
    """

    def __init__(self, given: Sequence[object], python_path: Callable[[], Sequence[str]]) -> None:
        self.failures: list[Violation] = []
        self._given = tuple(given)
        self._python_path = python_path
        self._found: list[_Implementation] | None = None
        self._of_thread = _Asking()

    @property
    def _implementations(self) -> list[_Implementation]:
        return self.find(Installation(self._python_path())) if self._found is None else self._found

    def find(self, installation: Installation) -> list[_Implementation]:
        """Find the implementations, given and installed, unless that was done before.

        Args:
            installation: The distributions that may bring some.
        """
        if self._found is None:
            added: list[_Implementation] = []
            for given in self._given:
                self._add(added, given, type(given).__name__)
            for distribution in installation.distributions:
                self._add_entry_points(added, installation, distribution)
            self._found = self._found or added  # another thread may have been faster
        return self._found

    def is_asking(self, *hooks: str) -> bool:
        """Tell whether this thread comes from one of these hooks, which is being asked."""
        return not self._of_thread.asked.isdisjoint(hooks)

    def _add_entry_points(
        self,
        added: list[_Implementation],
        installation: Installation,
        distribution: InstalledDistribution,
    ) -> None:
        """Load a distribution's hook objects: the only code that discovery imports, by consent."""
        try:
            found = _entry_points(installation.entry_points(distribution))
        except Exception as error:  # noqa: BLE001  (an installation may be broken in any way)
            raise_shortage(error)  # its veto would be missing for good
            self.note(f"reading the hooks of {distribution.label}", error)
            return
        for entry in found:
            name = f"{distribution.label}: {entry.name}"
            try:
                implementation = entry.load()
            except Exception as error:  # noqa: BLE001  (somebody else's code: anything may come)
                raise_shortage(error)
                self.note(f"loading {name}", error)
            else:
                self._add(added, implementation, name)

    def _add(self, added: list[_Implementation], implementation: object, name: str) -> None:
        import pluggy  # noqa: PLC0415  (most services have no hooks)

        from modular_tf.service import hookspecs  # noqa: PLC0415  (imports pluggy)

        if any(implementation is other.given for other in added):
            return
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        try:
            manager.register(implementation)
            manager.check_pending()
        except Exception as error:  # noqa: BLE001
            self.note(f"adding {name}", error)
            return
        added.append(_Implementation(name, implementation, manager.hook))

    def plugin_paths(self, config: Config) -> list[str]:
        """Return the paths that hooks add."""
        answers = self._call("modular_tf_plugin_paths", _path_list, config=config)
        return [path for paths in answers for path in paths]

    def veto(self, probe_of: Callable[[], Probe]) -> str | None:
        """Return why a hook forbids a plugin; a hook that fails forbids it, to be safe.

        Args:
            probe_of: Gives its probe, which is made only where somebody may want it.
        """
        if not self._implementations:
            return None
        before = len(self.failures)
        probe = probe_of()
        reasons = self._call("modular_tf_veto", str, candidate=probe.candidate, probe=probe)
        reasons += [failure.message for failure in self.failures[before:]]
        return reasons[0] if reasons else None

    def filesystems(self) -> Iterator[tuple[str, Any]]:
        """Yield schemes and filesystems that hooks bring."""
        for mapping in self._call("modular_tf_filesystems", dict):
            yield from mapping.items()

    def device_factories(self) -> Iterator[Any]:
        """Yield device factories that hooks bring."""
        for factories in self._call("modular_tf_device_factories", list):
            yield from factories

    def outcome(self, record_of: Callable[[], PluginRecord]) -> None:
        """Tell the hooks what became of a plugin.

        Args:
            record_of: Gives its record, which is made only where somebody may want it.
        """
        if self._found or self._found is None:
            deliver(partial(self._call, "modular_tf_outcome", bool, record=record_of()))

    def changed(self, change: PluginChange) -> None:
        """Tell the hooks what became of a change on disk."""
        deliver(partial(self._call, "modular_tf_change", bool, change=change))

    def _call(self, hook: str, convert: Callable[[Any], Any], **arguments: Any) -> list[Any]:
        """Call one hook of every implementation; return the answers, without those that fail.

        Args:
            hook: Its name.
            convert: Makes a plain value of an answer, which may be a generator that raises.
            **arguments: The hook's own.
        """
        outer = self._of_thread.asked
        results: list[Any] = []
        if hook in outer:
            return results
        try:
            self._of_thread.asked = outer | {hook}
            for name, _, callers in self._implementations:
                results += self._answers(name, getattr(callers, hook), convert, arguments)
        finally:
            self._of_thread.asked = outer
        return results

    def _answers(
        self,
        name: str,
        caller: pluggy.HookCaller,
        convert: Callable[[Any], Any],
        arguments: dict[str, Any],
    ) -> list[Any]:
        """Call one hook of one implementation; the answer is missing where it fails."""
        try:
            answers = caller(**arguments)
            found = answers if isinstance(answers, list) else [answers]
            return [convert(answer) for answer in found if answer is not None]
        except Exception as error:  # noqa: BLE001  (somebody else's code: anything may come)
            self.note(f"{caller.name} of {name}", error)
            return []

    def note(self, what: str, error: Exception) -> None:
        """Keep a failure for the report."""
        if isinstance(error, ModularTFError):
            found = Violation.of_error(error, "hooks")
        else:
            found = Violation(None, repr(error), "hooks")
        self.failures.append(replace(found, message=f"{what} failed: {found.message}"))
        _log.warning("hook.failed", what=what, error=repr(error))


def _entry_points(content: bytes) -> list[Any]:
    if _GROUP.encode() not in content:
        return []
    from importlib_metadata import EntryPoint  # noqa: PLC0415  (costly)

    return [EntryPoint(name, value, _GROUP) for name, value in entries_of_group(content, _GROUP)]


def _path_list(answer: Any) -> list[str]:
    """Return the paths of an answer, which may be one path instead of a list of them."""
    paths = [answer] if isinstance(answer, str | bytes | os.PathLike) else answer
    return [os.fsdecode(path) for path in paths]
