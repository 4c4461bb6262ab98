"""Calling the hooks, so that a broken one stops nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.discovery.installed import installed_distributions
from modular_tf.events import EventLog
from modular_tf.report import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pluggy

    from modular_tf.configuration import Config
    from modular_tf.discovery.installed import InstalledDistribution
    from modular_tf.discovery.probe import Probe
    from modular_tf.report import PluginRecord

_GROUP = "modular_tf.hooks"  # hookspecs.ENTRY_POINT_GROUP, whose module imports pluggy
_log = EventLog("hooks")


class Hooks:
    """The hook implementations of one service. Without any, pluggy is not even imported.

    Args:
        given: Objects that the application passed.
        python_path: Where installed packages are looked for.
    """

    def __init__(self, given: Sequence[object], python_path: Sequence[str]) -> None:
        self.failures: list[Reason] = []
        self._manager: pluggy.PluginManager | None = None
        for implementation in given:
            self._add(implementation, type(implementation).__name__)
        for distribution in installed_distributions(python_path):
            self._add_entry_points(distribution)

    def _add_entry_points(self, distribution: InstalledDistribution) -> None:
        """Load a distribution's hook objects: the only code that discovery imports, by consent."""
        try:
            if _GROUP.encode() not in distribution.read("entry_points.txt"):
                return
            from pathlib import Path  # noqa: PLC0415

            from importlib_metadata import PathDistribution  # noqa: PLC0415  (costly)

            found = PathDistribution(Path(distribution.metadata_directory)).entry_points
            for entry in found.select(group=_GROUP):
                self._add(entry.load(), f"{distribution.label}: {entry.name}")
        except Exception as error:  # noqa: BLE001  (somebody else's code: anything may come)
            self._note(f"hooks of {distribution.label}", error)

    def _add(self, implementation: object, name: str) -> None:
        from modular_tf import hookspecs  # noqa: PLC0415  (imports pluggy)

        if self._manager is None:
            self._manager = hookspecs.pluggy.PluginManager(hookspecs.PROJECT)
            self._manager.add_hookspecs(hookspecs)
        try:
            self._manager.register(implementation)
            self._manager.check_pending()
        except Exception as error:  # noqa: BLE001
            self._manager.unregister(implementation)
            self._note(name, error)

    def plugin_paths(self, config: Config) -> list[str]:
        """Return the paths that hooks add."""
        found: list[str] = []
        for paths in self._call(lambda hook: hook.modular_tf_plugin_paths(config=config)):
            found += [str(path) for path in paths or ()]
        return found

    def veto(self, probe: Probe) -> str | None:
        """Return why a hook forbids a plugin; a hook that fails forbids it, to be safe."""
        if self._manager is None:
            return None
        try:
            reason = self._manager.hook.modular_tf_veto(candidate=probe.candidate, probe=probe)
        except Exception as error:  # noqa: BLE001
            self._note("modular_tf_veto", error)
            return f"a veto hook failed: {error!r}"
        return None if reason is None else str(reason)

    def filesystems(self) -> Iterator[tuple[str, Any]]:
        """Yield schemes and filesystems that hooks bring."""
        for mapping in self._call(lambda hook: hook.modular_tf_filesystems()):
            yield from (mapping or {}).items()

    def device_factories(self) -> Iterator[Any]:
        """Yield device factories that hooks bring."""
        for factories in self._call(lambda hook: hook.modular_tf_device_factories()):
            yield from factories or ()

    def outcome(self, record: PluginRecord) -> None:
        """Tell the hooks what became of a plugin."""
        self._call(lambda hook: hook.modular_tf_outcome(record=record))

    def _call(self, call: Callable[[Any], Any]) -> list[Any]:
        if self._manager is None:
            return []
        try:
            results: list[Any] = call(self._manager.hook)
        except Exception as error:  # noqa: BLE001
            self._note("a hook", error)
            return []
        return results

    def _note(self, what: str, error: Exception) -> None:
        self.failures.append(Reason("hooks", None, f"{what} failed: {error!r}", None))
        _log.warning("hook.failed", what=what, error=repr(error))
