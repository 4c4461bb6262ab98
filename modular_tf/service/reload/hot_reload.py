"""Following what happened to plugin files: new ones, others in their place, and none any more.

A file in the place of another is loaded beside the old library, takes over what that serves in one
step, and leaves it to those who hold something of it; when nobody does, the old one is closed. It
stays mapped, as every library: a process that meets ever new contents grows by the size of each,
and by some of the mappings that Linux allows it (65 530 by default). The same contents again are
mapped once.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import FileIdentity, SeenFile, see_again
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.installed import unpacked_folder
from modular_tf.errors import ModularTFError
from modular_tf.events import EventLog
from modular_tf.rules import Violation
from modular_tf.rules.loading import REPLACEMENT_ACCEPTED
from modular_tf.service.lifetime import entry_point
from modular_tf.service.plugin import Attempt, Plugin, PluginEntry, log_step
from modular_tf.service.registrations import Registrations, close_served
from modular_tf.service.report import ChangeKind, PluginChange, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.search import FoundCandidates
    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.service.configuration import Config
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.pipeline import PluginPipeline
    from modular_tf.service.plugins import KnownPlugins
    from modular_tf.service.reload.watching import Change, Watch

_log = EventLog("plugin")
_MOST_SEARCHES = 4  # for files that are replaced again and again while they are tried
_IDENTITY_OF_NO_FILE = FileIdentity(0, 0, 0, 0, 0)
_NOT_WATCHED = frozenset((Source.BUNDLED, Source.DISTRIBUTION))


class Scope:
    """The files that a renewal is about, by their paths; None for all files.

    `whole` has the identity of those that were found whole. A file that has another one by now may
    be about to change again, and is left for a later renewal.
    """

    def __init__(
        self,
        paths: Iterable[str] | None = None,
        whole: Mapping[str, FileIdentity | None] | None = None,
    ) -> None:
        self._paths = None if paths is None else frozenset(paths)
        self._whole = whole or {}
        self.has_wheels = self._paths is None or any(map(unpacked_folder, self._paths))

    def __contains__(self, path: str) -> bool:
        return self._paths is None or path in self._paths

    @property
    def is_of_watch(self) -> bool:
        """Whether a watch made it, which reports an unfinished file again when that is whole."""
        return bool(self._whole)

    def has(self, path: str, identity: FileIdentity | None) -> bool:
        """Return whether a file counts that is as it is now."""
        return path in self and self._whole.get(path, identity) == identity


class RetiredLibrary:
    """A library that was replaced, or whose file is gone, with the plugin's name and path.

    A filesystem lives as long as somebody has it or a file of it open, and is cleaned up with the
    last of them. A platform is closed when `is_drained` is found true. Used under the
    service's lock.
    """

    def __init__(self, plugin: Plugin, registrations: Registrations) -> None:
        """Make it of what a plugin has registered, before that is given back."""
        self.plugin = plugin.name
        self.path = plugin.path
        self._filesystems = weakref.WeakSet(registrations.opened_filesystems)
        self._platform = registrations.loaded_platform
        self._lent = weakref.WeakSet(registrations.lent_devices)

    @property
    def is_drained(self) -> bool:
        """Whether nobody holds a filesystem, a file, a device or anything of a device."""
        if self._filesystems or self._lent:
            return False
        return self._platform is None or self._platform.is_idle

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in list(self._filesystems):
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close what is left, also under those who hold it; add what went wrong to `failures`."""
        close_served(list(self._filesystems), self._platform, failures, at_exit=at_exit)


class Prepared(NamedTuple):
    """A renewal whose plugins have not been loaded yet."""

    scope: Scope  # the files that were read
    removed: list[PluginChange]  # what was done already
    # The plugins that the pipeline has to process, each with the one that it shall replace.
    entries: dict[PluginEntry, PluginEntry | None]
    retried: list[PluginEntry]  # of these, shadowed ones, which may get what nobody serves any more


class HotReload:
    """Follows changes of the plugin files of one service, when asked or in threads. [any thread]

    It works in two steps, between which the plugins are tried without the service's lock. So the
    second compares again all that the first has found: what was overtaken is dropped.
    """

    def __init__(
        self,
        lock: ServiceLock,
        config: Config,
        known: KnownPlugins,
        pipeline: PluginPipeline,
        hooks: Hooks,
        *,
        load_all: Callable[[], object],
    ) -> None:
        self._lock = lock
        self._config = config
        self._known = known
        self._pipeline = pipeline
        self._hooks = hooks
        self._load_all = load_all
        self._draining: list[RetiredLibrary] = []
        # The entry that was made last to take the place of a plugin.
        self._replacement_of: weakref.WeakKeyDictionary[PluginEntry, PluginEntry] = (
            weakref.WeakKeyDictionary()
        )
        self._watches: set[Watch] = set()  # those that have not ended

    def refresh(self, paths: Iterable[str] | None) -> list[PluginChange]:
        """See `PluginService.refresh`."""
        return self._renew(Scope(None if paths is None else map(os.path.abspath, paths)))

    def follow(self, changes: Sequence[Change]) -> list[PluginChange]:
        """Follow what a watch has reported."""
        whole = {change.path: change.identity for change in changes}
        return self._renew(Scope(whole, whole))

    def _is_unused(self) -> bool:
        """Return whether nothing was searched or loaded yet, so that all plugins are meant."""
        return self._known.found is None and not any(self._known)

    def _renew(self, scope: Scope) -> list[PluginChange]:
        self._lock.check_open()
        if self._is_unused():
            self._load_all()
            return []
        self._known.search(again=False)
        places = self._known.paths()
        changes: list[PluginChange] = []
        for _ in range(_MOST_SEARCHES):
            attempt = Attempt()
            try:
                prepared = self._prepare(places, scope, attempt)
                vetoes = self._pipeline.vetoes(prepared.entries)
                found, again = self._finish(prepared, vetoes, attempt)
            finally:
                attempt.is_over = True
            changes += found
            if not again:
                break
            scope = Scope(again)
        return changes

    def watch(self, on_change: Callable[[PluginChange], object] | None) -> Watch:
        """See `PluginService.watch`."""
        from modular_tf.service.reload.watching import Watch  # noqa: PLC0415  (few watch)

        self._lock.check_open()
        self._pipeline.expect_changes()
        if self._is_unused():
            self._load_all()
        self._known.search(again=False)
        with self._lock:
            self._lock.check_open()
            plugins = [entry.plugin for entry in self._known if not entry.plugin.is_bundled]
            watch = Watch(
                self._watched_places,
                {plugin.path: _reported(plugin.file) for plugin in plugins},
                self.follow,
                self._config.watch_poll_interval_s,
                on_change=on_change,
                when_ended=self._watches.discard,
            )
            self._watches.add(watch)
        try:
            watch.start()
        except BaseException:
            watch.close()
            self._watches.discard(watch)  # no thread of it does
            raise
        return watch

    @entry_point
    def _watched_places(self) -> list[str]:
        """Return the files and directories that plugins come from, but for installed packages.

        Of those only the libraries that are known; and nothing of what comes with this package.
        """
        with self._lock:
            self.finish_drained()
            searched = self._known.found.searched if self._known.found is not None else ()
            places = dict.fromkeys(
                place.path
                for place in searched
                if place.source not in _NOT_WATCHED and place.ignored is None
            )
            plugins = [entry.plugin for entry in self._known if not entry.plugin.is_bundled]
            paths = [plugin.path for plugin in plugins]
            return [*places, *(path for path in paths if os.path.dirname(path) not in places)]

    # -- the files --------------------------------------------------------------------------------

    def _search(self, places: SearchPaths, scope: Scope) -> FoundCandidates:
        """Search what may have files of the scope: installed packages cost most of the time.

        A library of an unpacked wheel may be the twin of an installed one.
        """
        installed = [e for e in self._known if e.plugin.candidate.source is Source.DISTRIBUTION]
        if scope.has_wheels or any(entry.plugin.path in scope for entry in installed):
            self._known.found = discover(places, recall=self._known.cache.installed_plugins)
            return self._known.found
        others = places._replace(sources=places.sources - {Source.DISTRIBUTION})
        return discover(others, recall=self._known.cache.installed_plugins)

    def _gone(self, found: FoundCandidates, scope: Scope) -> list[PluginEntry]:
        """Return plugins whose file is gone, or leads to the file of another one now."""
        paths = {candidate.path for candidate in found.candidates}
        twins = {twin.path for candidate in found.candidates for twin in candidate.twins} - paths
        return [
            entry
            for entry in self._known
            if not entry.plugin.is_bundled
            and (path := entry.plugin.path) in scope
            and ((path in twins and not entry.plugin.is_there) or not os.path.lexists(path))
        ]

    def _read_again(self, scope: Scope) -> None:
        """Read the files whose identity does not show that their bytes are the same.

        One that took the place of another within one tick of the clock may have its inode and size
        too. A plugin whose file is another one knows nothing of it afterwards.
        """
        with self._lock:
            coming = [new for new in self._replacement_of.values() if new.is_under_way]
            entries = [entry for entry in (*self._known, *coming) if entry.plugin.path in scope]
        for entry in entries:
            file = None if entry.plugin.is_bundled else entry.plugin.file
            if file is None or file.sha256 is None or file.is_settled(time_ns()):
                continue
            if file.identity == FileIdentity.at(file.path):
                entry.change(_read_as, file, see_again(file))

    def _compare(
        self, found: FoundCandidates, scope: Scope, gone: Sequence[PluginEntry]
    ) -> tuple[list[tuple[PluginEntry, Candidate]], list[Candidate]]:
        """Return the plugins whose file is another one, and the files that are nobody's yet."""
        by_path: dict[str, PluginEntry] = {}
        for entry in self._known:
            other = by_path.setdefault(entry.plugin.path, entry)
            # A search may have met a replaced file as a new one.
            if other is not entry and entry.plugin.state is State.FOUND:
                self._known.forget(entry)
        plugins = [entry.plugin for entry in self._known]
        identities = {p.candidate.identity for p in plugins if p.is_there}
        replaced: list[tuple[PluginEntry, Candidate]] = []
        new: list[Candidate] = []
        for candidate in found.candidates:
            old = by_path.get(candidate.path)
            identity = FileIdentity.at(candidate.path)
            if not scope.has(candidate.path, identity):
                continue
            if old is None:
                if candidate.identity not in identities:
                    new.append(candidate)
            elif not (old.plugin.is_bundled or self._is_dealt_with(old, identity)):
                replaced.append((old, candidate))
        # The files of plugins whose own path leads to another file now.
        left = {e.plugin.candidate.identity for e in (*gone, *(entry for entry, _ in replaced))}
        paths = {plugin.path for plugin in plugins} | {candidate.path for candidate in new}
        new += [c for c in found.candidates if c.identity in left and c.path not in paths]
        return replaced, new

    def _is_dealt_with(self, entry: PluginEntry, identity: FileIdentity | None) -> bool:
        """Return whether a plugin has this file, or a replacement with it is being processed."""
        new = self._replacement_of.get(entry)
        is_coming = new is not None and new.is_under_way and new.plugin.identity == identity
        return is_coming or identity == entry.plugin.identity

    # -- the first step ---------------------------------------------------------------------------

    @entry_point
    def _prepare(self, places: SearchPaths, scope: Scope, attempt: Attempt) -> Prepared:
        """Read the files of a scope, and drop the plugins that have none any more.

        The attempt is over when another thread may begin with what is prepared.
        """
        found = self._search(places, scope)
        self._read_again(scope)
        with self._lock:
            self._lock.check_open()
            self.finish_drained()
            gone = self._gone(found, scope)
            removed = [self._remove(entry) for entry in gone]
            shadowed = self._shadowed()
            replaced, new = self._compare(found, scope, gone)
        scanned_again = self._known.scanned([entry.plugin.candidate for entry in shadowed])
        scanned_replaced = self._known.scanned([candidate for _, candidate in replaced])
        scanned_new = self._known.scanned(new)
        with self._lock:
            self._lock.check_open()
            retried = self._retried(shadowed, scanned_again, attempt)
            entries: dict[PluginEntry, PluginEntry | None] = dict.fromkeys(retried)
            for (old, _), plugin in zip(replaced, scanned_replaced, strict=True):
                if (made := self._replacement(old, plugin, scope)) is not None:
                    entries[made] = old
            others = {*gone, *retried, *(entry for entry, _ in replaced)}
            unfinished = [entry for entry in self._unfinished(scope) if entry not in others]
            # Meanwhile another thread may have met another file at the path of a new one.
            paths = {entry.plugin.path for entry in self._known}
            unmet = [plugin for plugin in scanned_new if plugin.path not in paths]
            for entry in (*unfinished, *self._known.add_new(unmet, attempt)):
                path, identity = entry.plugin.path, entry.plugin.identity
                if path in scope and not scope.has(path, identity):  # it is not whole any more
                    self._known.forget(entry)
                else:
                    entries[entry] = None
            for entry in entries:
                entry.attempt = attempt
        return Prepared(scope, removed, entries, retried)

    def _remove(self, entry: PluginEntry) -> PluginChange:
        plugin = entry.plugin
        if entry.serving is not None:
            self._draining.append(RetiredLibrary(plugin, entry.serving.registrations))
            entry.serving.forget()
            self.finish_drained()
        self._known.forget(entry)
        plugin.log.info("plugin.removed")
        return _change(ChangeKind.REMOVED, plugin)

    def _shadowed(self) -> list[PluginEntry]:
        """Return shadowed plugins that may get what nobody serves any more."""
        return [
            entry
            for entry in self._known
            if entry.serving is not None and _could_serve(entry.plugin, entry.serving.registrations)
        ]

    def _retried(
        self, shadowed: Sequence[PluginEntry], scanned: Sequence[Plugin], attempt: Attempt
    ) -> list[PluginEntry]:
        """Start again with shadowed plugins, but for those that another thread has dealt with."""
        retried = []
        for old, plugin in zip(shadowed, scanned, strict=True):
            if old.serving is None or not self._known.has(old):
                continue
            log_step(None, plugin)
            new = old.anew(plugin, attempt)
            self._known.replace(old, new)
            old.serving.forget()
            retried.append(new)
        return retried

    def _replacement(self, old: PluginEntry, plugin: Plugin, scope: Scope) -> PluginEntry | None:
        """Return the entry that shall replace a plugin's.

        Where the plugin serves something, it registers beside that. None is returned where the
        bytes are the same, and where another thread has dealt with it while files were read.
        """
        if not (scope.has(plugin.path, plugin.identity) and self._known.has(old)):
            return None
        if self._is_dealt_with(old, plugin.identity):
            return None
        log_step(None, plugin)
        if _serves_same_bytes(old, plugin):
            old.change(_moved, plugin)
            return None
        staged = None
        if old.plugin.state is State.LOADED and old.serving is not None:
            staged = Registrations.replacing(old.serving.registrations)
        new = PluginEntry(plugin._replace(name=old.plugin.name, sealed=True), staged)
        self._replacement_of[old] = new
        return new

    def _unfinished(self, scope: Scope) -> list[PluginEntry]:
        """Return plugins that were to be loaded and that a shortage left unfinished."""
        return [
            entry
            for entry in self._known
            if entry.plugin.state is State.FOUND
            and entry.plugin.path in scope
            and (self._known.all_wanted or entry.attempt is not None)
            and not entry.is_under_way
        ]

    # -- the second step --------------------------------------------------------------------------

    @entry_point
    def _finish(
        self, prepared: Prepared, vetoes: dict[PluginEntry, str | None], attempt: Attempt
    ) -> tuple[list[PluginChange], list[str]]:
        """Try and register what was prepared; return the changes, and what is to be read again."""
        self._pipeline.try_out(self._pipeline.judge(vetoes, attempt))
        asked = {new: old for new, old in prepared.entries.items() if new in vetoes}
        with self._lock:
            changes, again = self._register(prepared._replace(entries=asked))
        for change in changes:
            self._hooks.changed(change)
        return changes, again

    def _register(self, prepared: Prepared) -> tuple[list[PluginChange], list[str]]:
        """Register what was prepared, but for what was dealt with or has another file by now."""
        old_of = prepared.entries
        current = [
            entry
            for entry in old_of
            if self._known.has(old_of[entry] or entry)
            and FileIdentity.at(entry.plugin.path) == entry.plugin.identity
        ]
        overtaken = [entry for entry in old_of if entry not in current]
        for entry in overtaken:
            self._known.forget(entry)  # it never served
        changes = list(prepared.removed)
        try:
            self._pipeline.register(current)
            replaced = [(old, new) for new in current if (old := old_of[new]) is not None]
            changes += [self._replace(old, new) for old, new in replaced]
        except BaseException:  # a shortage: what was opened for the others is closed
            for entry in current:
                if old_of[entry] is not None and not self._known.has(entry):
                    entry.close([], at_exit=False)
            raise
        for entry in current:
            is_added = old_of[entry] is None and entry not in prepared.retried
            if is_added and not entry.plugin.is_not_tried:
                entry.plugin.log.info("plugin.appeared")
                changes.append(_change(ChangeKind.APPEARED, entry.plugin))
        # A watch reports the others when they are whole.
        again = [] if prepared.scope.is_of_watch else [entry.plugin.path for entry in overtaken]
        return changes, [*again, *(entry.plugin.path for entry in self._shadowed())]

    def _replace(self, old: PluginEntry, new: PluginEntry) -> PluginChange:
        """Let the new one take over if it serves, or if there is nothing to keep."""
        staged = new.registrations
        if staged is not None:
            conflicts = staged.give_up_conflicts()  # another replacement may have been faster
            new.change(_without_conflicts, staged, conflicts)
            if new.plugin.state is not State.LOADED:
                return self._keep(old, new)
        if old.serving is not None:
            self._draining.append(RetiredLibrary(old.plugin, old.serving.registrations))
        if staged is not None:
            staged.take_over()
        self._known.replace(old, new)
        if old.serving is not None:
            old.serving.forget()
        self.finish_drained()
        new.plugin.log.info("plugin.replaced")
        return _change(ChangeKind.REPLACED, new.plugin)

    def _keep(self, old: PluginEntry, new: PluginEntry) -> PluginChange:
        """Keep the old library serving, since the new one cannot."""
        new.close([], at_exit=False)
        plugin = new.plugin
        first = plugin.reasons[0].message if plugin.reasons else "it offers nothing"
        why = f"the new file is {plugin.state}: {first}"
        refusal = Violation(REPLACEMENT_ACCEPTED, f"{plugin.path}: {why}", "register")
        if not plugin.is_not_tried:  # else the next refresh tries again
            old.change(lambda before: before._replace(file=plugin.file))
        old.change(Plugin.refusing_the_new_file, refusal)
        plugin.log.warning("plugin.replacement_refused", reason=why)
        return _change(ChangeKind.REPLACED, old.plugin, refusal)

    # -- the end ----------------------------------------------------------------------------------

    @property
    def draining(self) -> int:
        """How many old libraries stay because something of them is still held."""
        return len(self._draining)

    def finish_drained(self) -> None:
        """Close the libraries of which nobody holds anything any more."""
        for drained in [retired for retired in self._draining if retired.is_drained]:
            failures: list[ModularTFError] = []
            drained.close(failures, at_exit=False)
            errors = [error.message for error in failures]
            self._draining.remove(drained)
            _log.info("generation.closed", plugin=drained.plugin, path=drained.path, errors=errors)

    def stop_watching(self, timeout_s: float | None) -> None:
        """End the watches; call it without the service's lock, which their last change may need."""
        for watch in list(self._watches):
            watch.close(timeout_s)

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close old libraries that still serve somebody; add what went wrong to `failures`.

        The watches have been stopped.
        """
        self._watches.clear()
        for old in self._draining:
            old.close(failures, at_exit=at_exit)
        self._draining.clear()

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        self._watches.clear()
        for retired in self._draining:
            retired.after_fork_in_child()


def _change(kind: ChangeKind, plugin: Plugin, refusal: Violation | None = None) -> PluginChange:
    return PluginChange(kind, plugin.path, plugin.name, plugin.record(), refusal)


def _reported(file: SeenFile | None) -> FileIdentity:
    """Return the identity by which a watch knows a file that was read before.

    Where it may be that of other bytes too, or none is known, no file has it, and the watch reports
    once what is at the path, or that nothing is.
    """
    if file is None or file.identity is None or not file.is_settled(time_ns()):
        return _IDENTITY_OF_NO_FILE
    return file.identity


def _read_as(plugin: Plugin, file: SeenFile, again: SeenFile | None) -> Plugin:
    """Return a plugin with its file as it was read again; None where that has other bytes."""
    return plugin._replace(file=again) if plugin.file is file else plugin


def _serves_same_bytes(entry: PluginEntry, plugin: Plugin) -> bool:
    """Return whether a plugin that registered something has the bytes of another file."""
    before = entry.plugin
    is_same = before.sha256 is not None and plugin.sha256 == before.sha256
    # What failed may have failed since its file had been replaced for a moment.
    return is_same and entry.serving is not None and before.state is not State.FAILED


def _moved(plugin: Plugin, to: Plugin) -> Plugin:
    """Return a plugin whose bytes lie in another file now, and that is in no other's place."""
    remarks = tuple([remark for remark in plugin.remarks if remark.rule != REPLACEMENT_ACCEPTED])
    return plugin._replace(candidate=to.candidate, file=to.file, known=to.known, remarks=remarks)


def _without_conflicts(
    plugin: Plugin, staged: Registrations, conflicts: Sequence[Violation]
) -> Plugin:
    """Return a plugin without what somebody else has got since it was loaded."""
    outcome = plugin.outcome
    if outcome is None or not conflicts:
        return plugin
    return plugin._replace(
        outcome=outcome._replace(
            schemes=tuple(staged.filesystems),
            device_types=outcome.device_types if staged.platform is not None else (),
            reasons=(*outcome.reasons, *conflicts),
        )
    )


def _could_serve(plugin: Plugin, registrations: Registrations) -> bool:
    """Return whether a plugin may have a scheme now that another had when it was registered."""
    if plugin.state is not State.SHADOWED or plugin.outcome is None:
        return False
    finding = plugin.outcome.finding or plugin.finding
    if finding is None or finding.offer is None:
        return False
    missing = set(finding.offer.schemes).difference(plugin.outcome.schemes)
    return any(registrations.conflict_of(scheme) is None for scheme in missing)
