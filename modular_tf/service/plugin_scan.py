"""From candidates to plugins: each is recalled or probed, and judged."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.discovery.file_identity import FileIdentity, see_library
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.rules.shortage import shortage_of
from modular_tf.service.configuration import trust_of
from modular_tf.service.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.load_facts import LoadFacts
    from modular_tf.discovery.probe import Prober
    from modular_tf.discovery.trust.verdict import TrustVerdict
    from modular_tf.service.configuration import Config
    from modular_tf.service.kept.scan_cache import CacheEntry, ScanCache

_Seen = TypeVar("_Seen")


def scan(candidates: Sequence[Candidate], config: Config, cache: ScanCache) -> list[Plugin]:
    """Return plugins of candidates, in the same order; nothing of theirs is run.

    Args:
        candidates: The files.
        config: What the user decided.
        cache: What is known of libraries, and takes what becomes known.
    """
    made = PluginScan(candidates, config, cache)
    made.probe(made.recall(candidates), tell_progress=lambda: None)
    return made.plugins


class PluginScan:
    """Candidates that become plugins: those of which nothing is known have to be probed.

    Reading libraries takes its time: not for the service's lock.

    Args:
        candidates: The files.
        config: What the user decided.
        cache: What is known of libraries, and takes what becomes known.
    """

    def __init__(self, candidates: Sequence[Candidate], config: Config, cache: ScanCache) -> None:
        self.candidates = candidates
        self._config = config
        self._cache = cache
        self._plugins: dict[str, Plugin] = {}

    @property
    def plugins(self) -> list[Plugin]:
        """One plugin for each candidate, in the same order; all have been recalled or probed."""
        return [self._plugins[candidate.path] for candidate in self.candidates]

    def recall(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Judge candidates by what is known of them; return those of which nothing is."""
        if not candidates:
            return []
        self._cache.refresh()
        one_pass = _Pass(self._config, self._cache)
        # Step by step for all of them, which takes two thirds of the time of one after the other:
        # a processor's caches hold the code of one step.
        seen = [(found, self._look(found, self._recall)) for found in candidates]
        judged = [
            (found, known, self._look(found, partial(one_pass.judged, known)))
            for found, known in seen
            if known is not None
        ]
        for found, known, trust in judged:
            if trust is not None:
                self._plugins[found.path] = Plugin.of(
                    found, known.facts, trust, known=known, identity=known.seen.identity
                )
        self._cache.save()
        return [found for found in candidates if found.path not in self._plugins]

    def _recall(self, candidate: Candidate) -> CacheEntry | None:
        return self._cache.recall(candidate.path)

    def probe(self, candidates: Sequence[Candidate], tell_progress: Callable[[], None]) -> None:
        """Probe and judge candidates, and keep what becomes known.

        Args:
            candidates: Those of which nothing is known.
            tell_progress: Called after each.
        """
        if not candidates:
            return
        with ExitStack() as opened:
            one_pass = _Pass(self._config, self._cache, opened)
            for candidate in candidates:
                plugin = self._look(candidate, one_pass.probed)
                if plugin is not None:
                    self._plugins[candidate.path] = plugin
                tell_progress()
        self._cache.save()

    def _look(
        self, candidate: Candidate, look_at: Callable[[Candidate], _Seen | None]
    ) -> _Seen | None:
        """Return what a look gives; keep the candidate as unread where a shortage prevents it."""
        try:
            return look_at(candidate)
        except (OSError, MemoryError) as error:  # also of an import
            shortage = shortage_of(error)
            if shortage is None:
                raise
            identity = FileIdentity.at(candidate.path)
            self._plugins[candidate.path] = Plugin.unread(candidate, shortage, identity)
            return None


class _Pass:
    """What is shared by the candidates of one look at all of them."""

    def __init__(self, config: Config, cache: ScanCache, opened: ExitStack | None = None) -> None:
        self._config = config
        self._cache = cache
        self._opened = opened or ExitStack()
        self._prober: Prober | None = None  # reads each file once
        self._began_ns = time_ns()
        self._seen: SeenFile | None = None

    @computed_once
    def _judge(self) -> TrustJudge:
        return TrustJudge(
            trust_of(self._config), python_path=sys.path, known_sha256=self._sha256_of
        )

    def judged(self, known: CacheEntry, candidate: Candidate) -> TrustVerdict:
        self._seen = known.seen
        return self._judged(candidate, known.facts, known)

    def probed(self, candidate: Candidate) -> Plugin:
        from modular_tf.discovery.load_facts import LoadFacts  # noqa: PLC0415  (as in _the_prober)

        identity = FileIdentity.at(candidate.path)  # before anything is read
        refusal = self._judge.refusal_by_rights(candidate)
        if refusal is not None:  # whoever wrote the file decides how long its reading takes
            probe = self._the_prober().probe(candidate, link=False)
            facts = LoadFacts.of(probe)
            return Plugin.of(candidate, facts, refusal, probe=probe, identity=identity)
        # Before it is probed: a change after that is noticed.
        self._seen = see_library(candidate.path)
        probe = self._the_prober().probe(candidate)
        facts = LoadFacts.of(probe)
        known = None
        if self._seen is not None:
            known = self._cache.describe(probe, self._seen, self._began_ns)
            self._cache.remember(known)
        trust = self._judged(candidate, facts, known)
        return Plugin.of(candidate, facts, trust, known=known, probe=probe, identity=identity)

    def _the_prober(self) -> Prober:
        if self._prober is None:
            # What reads libraries is imported where one is read; known plugins are not.
            from modular_tf.discovery.linking.host_exports import host_exports  # noqa: PLC0415
            from modular_tf.discovery.probe import Prober  # noqa: PLC0415

            self._prober = self._opened.enter_context(Prober(host_exports()))
        return self._prober

    def _judged(
        self, candidate: Candidate, facts: LoadFacts, known: CacheEntry | None
    ) -> TrustVerdict:
        if self._seen is not None and self._seen.sha256 is None and not facts.loadable:
            return self._judge.judge_unread(candidate)
        verdict = self._judge.judge(candidate, self._seen)
        if verdict.accepted and facts.loadable:
            if facts.companions:
                verdict = self._judge.judge_companions(candidate, verdict, facts.companions)
            if facts.executable_stacks:
                verdict = self._judge.judge_stacks(verdict, facts.executable_stacks)
            verdict = self._judge.judge_environment_libraries(candidate, verdict)
        if known is None or not verdict.accepted:
            return verdict
        if known.finding is not None and known.finding.opened:
            verdict = self._judge.judge_opened(candidate, verdict, known.finding.opened)
        if known.opened_before and verdict.accepted:
            verdict = self._judge.judge_opened_before(candidate, verdict, known.opened_before)
        return verdict

    def _sha256_of(self, path: str, identity: FileIdentity) -> str | None:
        """Return the hash of the candidate under judgement, which was read for the cache."""
        seen = self._seen
        if seen is None or (seen.path, seen.identity) != (path, identity):
            return None
        return seen.sha256
