"""Following what happened to plugin files: new ones, others in their place, and none any more.

A replaced library becomes a new generation of its plugin. That is opened beside the old one, takes
over what it serves in one step, and leaves it to those who hold something of it; when nobody does,
the old one is closed. It stays mapped, as every library: a process that meets ever new contents
grows by the size of each, and by some of the mappings that Linux allows it (65 530 by default). The
same contents again are mapped once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.events import EventLog
from modular_tf.rules import Violation
from modular_tf.rules.mapping import REPLACEMENT_ACCEPTED
from modular_tf.service.plugin_change import PluginChange
from modular_tf.service.reload.followed_files import FollowedFiles
from modular_tf.service.reload.watching.change import ChangeKind
from modular_tf.service.reload.watching.snapshot import file_identity
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.errors import ModularTFError
    from modular_tf.service.mapped_library import Generation
    from modular_tf.service.plugin import Attempt, PluginEntry
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.reload.followed_files import Replaced, Scope
    from modular_tf.service.reload.retired_library import RetiredGeneration

_log = EventLog("plugin")


class _Succession(NamedTuple):
    """A plugin, what shall take its place, and what of it serves until then."""

    old: PluginEntry
    new: PluginEntry
    serving: Generation | None


class _Conclusion(NamedTuple):
    """A succession that takes place: it is done as a whole, also after an interrupt."""

    old: PluginEntry
    new: PluginEntry
    retired: RetiredGeneration | None


class Prepared(NamedTuple):
    """A renewal whose plugins have not been loaded yet.

    Attributes:
        scope: What was looked at.
        removed: What was done already.
        revived: Plugins that may have what nobody serves any more.
        successions: The plugins that are to be renewed.
        added: The new ones, and those whose way somebody began and did not finish.
        attempt: Is over when somebody else may begin with them.
    """

    scope: Scope
    removed: list[PluginChange]
    revived: list[PluginEntry]
    successions: list[_Succession]
    added: list[PluginEntry]
    attempt: Attempt

    @property
    def entries(self) -> list[PluginEntry]:
        """The plugins whose way has to be run."""
        return [*self.revived, *(succession.new for succession in self.successions), *self.added]

    def only(self, entries: Collection[PluginEntry]) -> Prepared:
        """Return it without the plugins that are not among these."""
        return self._replace(
            revived=[entry for entry in self.revived if entry in entries],
            successions=[pair for pair in self.successions if pair.new in entries],
            added=[entry for entry in self.added if entry in entries],
        )


class Renewal:
    """Brings the plugins of one service up to date. Used under the service's lock.

    In two steps, between which the plugins are tried without the lock. So the second looks again
    at all that the first has seen: what was overtaken is dropped.

    Attributes:
        files: Those of the plugins.

    Args:
        known: The plugins.
    """

    def __init__(self, known: KnownPlugins) -> None:
        self._known = known
        self.files = FollowedFiles(known)
        self._draining: list[RetiredGeneration] = []
        self._unfinished: list[_Conclusion] = []
        self._revived: list[PluginEntry] = []  # whose way anew has not come to its end

    def prepare(self, places: SearchPaths, scope: Scope, attempt: Attempt) -> Prepared:
        """Look at some files, or at all, and drop the plugins that have none any more.

        Args:
            places: Where plugins come from.
            scope: The files to look at. Others are left as they are.
            attempt: Is over when somebody else may begin with what is prepared.
        """
        self._finish_conclusions()
        self.finish_drained()
        self._known.retry_postponed()
        found = self.files.search(places, scope)
        gone = list(self.files.gone(found, scope))
        removed = [self._remove(entry) for entry in gone]
        self._revive_shadowed()
        revived = self._take_revived()
        replaced, new = self.files.compare(found, scope)
        others = [*gone, *(pair.entry for pair in replaced)]
        new += self.files.candidates_at_other_paths(found, others, new)
        successions = self._successions(replaced, scope)
        left = [entry for entry in self._left(scope) if entry not in others]
        met = self._known.meet(new, attempt)
        added = [entry for entry in (*left, *met) if self._is_whole(entry, scope)]
        prepared = Prepared(scope, removed, revived, successions, added, attempt)
        for entry in prepared.entries:
            entry.attempt = attempt
        return prepared

    def _left(self, scope: Scope) -> list[PluginEntry]:
        """Return plugins that somebody wanted, whom an interrupt kept from finishing."""
        return [
            entry
            for entry in self._known
            if entry.state is State.FOUND
            and entry.path in scope
            and (self._known.all_wanted or entry.attempt is not None)
            and not (entry.is_under_way or entry in self._revived)
        ]

    def finish(
        self, prepared: Prepared, register: Callable[[list[PluginEntry]], None]
    ) -> tuple[list[PluginChange], list[str]]:
        """Let what was prepared take its place.

        Args:
            prepared: As above. What another thread has dealt with in the meantime, and what has
                another file by now, is left.
            register: Registers plugins.

        Returns:
            The changes, and the paths that have to be looked at again.
        """
        standing = {pair.new: pair.old for pair in prepared.successions}
        current = {
            entry: None
            for entry in prepared.entries
            if self._known.has(standing.get(entry, entry))
            and file_identity(entry.path) == entry.identity
        }
        overtaken = [entry for entry in prepared.entries if entry not in current]
        for entry in overtaken:
            self._known.forget(entry)  # it never served
        prepared = prepared.only(current)
        changes = list(prepared.removed)
        try:
            register(list(current))
            changes += [self._conclude(*pair) for pair in prepared.successions]
        except BaseException:  # an interrupt
            self._drop_successors(prepared)
            raise
        changes += [self._added(entry) for entry in prepared.added if not entry.is_postponed]
        self._revive_shadowed()
        # A watch tells of the others when they are whole.
        again = [] if prepared.scope.waits else [entry.path for entry in overtaken]
        return changes, [*again, *(entry.path for entry in self._take_revived())]

    def _drop_successors(self, prepared: Prepared) -> None:
        """Close what was opened for successions that did not come to take place."""
        taking_place = [conclusion.new for conclusion in self._unfinished]
        for _, new, _ in prepared.successions:
            if new.generation is not None and new not in taking_place and not self._known.has(new):
                new.generation.close([], at_exit=False)

    # -- following --------------------------------------------------------------------------------

    def _added(self, entry: PluginEntry) -> PluginChange:
        _log.info("plugin.appeared", plugin=entry.name, path=entry.path)
        return _change(ChangeKind.APPEARED, entry)

    def _remove(self, entry: PluginEntry) -> PluginChange:
        change = _change(ChangeKind.REMOVED, entry)
        if entry.generation is not None:
            self._retire(entry.generation)
        self._known.forget(entry)
        _log.info("plugin.removed", plugin=entry.name, path=entry.path)
        return change

    def _is_whole(self, entry: PluginEntry, scope: Scope) -> bool:
        """Tell whether what was judged is what had been found whole; forget it otherwise."""
        if entry.path not in scope or scope.has(entry.path, entry.identity):
            return True
        self._known.forget(entry)
        return False

    def _successions(self, replaced: list[Replaced], scope: Scope) -> list[_Succession]:
        """Make the successors of plugins, but of those whose bytes are the same as before."""
        made = []
        entries = self._known.entries_of([pair.candidate for pair in replaced])
        for (old, candidate), new in zip(replaced, entries, strict=True):
            if not scope.has(new.path, new.identity):
                continue
            is_same = old.sha256 is not None and new.sha256 == old.sha256
            # What failed may have failed since its file had been replaced for a moment.
            if is_same and old.generation is not None and old.state is not State.FAILED:
                old.candidate, old.identity, old.known = candidate, new.identity, new.known
                continue
            new.name, new.sealed = old.name, True
            old.successor = new
            new.predecessor = old.generation if old.state is State.LOADED else None
            made.append(_Succession(old, new, new.predecessor))
        return made

    def _conclude(
        self, old: PluginEntry, new: PluginEntry, serving: Generation | None
    ) -> PluginChange:
        """Let the successor take over if it serves, or if there is nothing to keep."""
        if new.generation is not None:
            new.generation.give_up_taken()  # another successor may have been faster
        if serving is not None and new.state is not State.LOADED:
            return self._keep(old, new)
        retired = None if old.generation is None else old.generation.retired()
        self._unfinished.append(_Conclusion(old, new, retired))
        self._finish_conclusions()
        _log.info("plugin.replaced", plugin=new.name, path=new.path)
        return _change(ChangeKind.REPLACED, new)

    def _finish_conclusions(self) -> None:
        """Let successors take over; what an interrupt left of that is done now."""
        for conclusion in list(self._unfinished):
            old, new, retired = conclusion
            if new.generation is not None:
                new.generation.take_over()
            self._known.replace(old, new)
            if retired is not None and retired not in self._draining:
                self._draining.append(retired)
            if old.generation is not None:
                old.generation.forget()
            self._unfinished.remove(conclusion)
        self.finish_drained()

    def _keep(self, old: PluginEntry, new: PluginEntry) -> PluginChange:
        """Let the old generation go on, since the new one cannot."""
        if new.generation is not None:
            new.generation.close([], at_exit=False)
        first = new.record().reason
        why = f"the new file is {new.state}: {first.message if first else 'it offers nothing'}"
        kept = Violation(REPLACEMENT_ACCEPTED, f"{old.path}: {why}", "register")
        if not new.is_postponed:  # else the next look tries again
            old.identity = new.identity
        old.note_kept(kept)
        _log.warning("plugin.kept", plugin=old.name, path=old.path, reason=why)
        return _change(ChangeKind.REPLACED, old, kept)

    def _revive_shadowed(self) -> None:
        """Let plugins go their way anew that may have what nobody serves any more."""
        for old in self._known:
            if old.state is not State.SHADOWED or old.generation is None:
                continue
            if not old.generation.could_serve:
                continue
            (new,) = self._known.entries_of([old.candidate])
            new.name, new.sealed = old.name, old.sealed
            self._revived.append(new)
            self._known.replace(old, new)
            old.generation.forget()

    def _take_revived(self) -> list[PluginEntry]:
        """Return the plugins that are to go their way anew and that nobody takes on it yet."""
        known = [entry for entry in self._revived if self._known.has(entry)]
        self._revived = [entry for entry in known if entry.state is State.FOUND]
        return [entry for entry in self._revived if not entry.is_under_way]

    # -- the end of generations -------------------------------------------------------------------

    def _retire(self, generation: Generation) -> None:
        self._draining.append(generation.retired())
        generation.forget()
        self.finish_drained()

    @property
    def draining(self) -> int:
        """How many generations serve nobody new and are not closed yet."""
        return len(self._draining)

    def finish_drained(self) -> None:
        """Close the generations of which nobody holds anything any more."""
        for drained in [retired for retired in self._draining if retired.is_drained]:
            failures: list[ModularTFError] = []
            drained.close(failures, at_exit=False)
            errors = [error.message for error in failures]
            self._draining.remove(drained)
            _log.info("generation.closed", plugin=drained.plugin, path=drained.path, errors=errors)

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close all that still serves to the end; add what went wrong to `failures`."""
        for old in self._draining:
            old.close(failures, at_exit=at_exit)
        for conclusion in self._unfinished:
            # The retired one is among those that drain only when its conclusion is finished.
            for left in (conclusion.new.generation, conclusion.retired):
                if left is not None:
                    left.close(failures, at_exit=at_exit)
        self._draining.clear()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for retired in self._draining:
            retired.after_fork_in_child()


def _change(kind: ChangeKind, entry: PluginEntry, kept: Violation | None = None) -> PluginChange:
    return PluginChange(kind, entry.path, entry.name, entry.record(), kept)
