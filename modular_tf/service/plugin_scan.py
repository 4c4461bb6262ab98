"""From candidates to plugins: each is recalled or probed, and judged."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import FileIdentity, see_library
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.rules.shortage import shortage_of
from modular_tf.service.configuration import trust_of
from modular_tf.service.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.load_facts import LoadFacts
    from modular_tf.discovery.probe import Prober
    from modular_tf.discovery.trust.verdict import TrustVerdict
    from modular_tf.first_contact.finding import Finding
    from modular_tf.service.configuration import Config
    from modular_tf.service.kept.scan_cache import ScanCache


def scan(candidates: Sequence[Candidate], config: Config, cache: ScanCache) -> list[Plugin]:
    """Judge candidates, and probe those of which nothing is known; nothing of theirs is run.

    Args:
        candidates: The files.
        config: What the user decided.
        cache: What is known of libraries, and takes what becomes known.

    Returns:
        One plugin each, in the same order.
    """
    if not candidates:
        return []
    cache.refresh()
    with ExitStack() as opened:
        one_pass = _Pass(config, cache, opened)
        plugins = [one_pass.plugin_of(candidate) for candidate in candidates]
    cache.save()
    return plugins


class _Pass:
    """What is shared by the candidates of one scan."""

    def __init__(self, config: Config, cache: ScanCache, opened: ExitStack) -> None:
        self._config = config
        self._cache = cache
        self._opened = opened
        self._prober: Prober | None = None
        self._seen: SeenFile | None = None

    @cached_property
    def _judge(self) -> TrustJudge:
        return TrustJudge(
            trust_of(self._config), python_path=sys.path, known_sha256=self._sha256_of
        )

    def plugin_of(self, candidate: Candidate) -> Plugin:
        identity = None
        try:
            plugin = self._recalled(candidate)
            if plugin is not None:
                return plugin
            identity = FileIdentity.at(candidate.path)  # before anything is read
            return self._probed(candidate, identity)
        except (OSError, MemoryError) as error:  # also of an import
            shortage = shortage_of(error)
            if shortage is None:
                raise
            return Plugin.unread(candidate, shortage, identity)

    def _recalled(self, candidate: Candidate) -> Plugin | None:
        known = self._cache.recall(candidate.path)
        if known is None:
            return None
        self._seen = known.seen
        trust = self._judged(candidate, known.facts, known.finding)
        return Plugin.of(candidate, known.facts, trust, known=known, identity=known.seen.identity)

    def _probed(self, candidate: Candidate, identity: FileIdentity | None) -> Plugin:
        from modular_tf.discovery.load_facts import LoadFacts  # noqa: PLC0415  (as in _the_prober)

        refusal = self._judge.refusal_by_rights(candidate)
        if refusal is not None:  # whoever wrote the file decides how long its reading takes
            probe = self._the_prober().probe(candidate, link=False)
            facts = LoadFacts.of(probe)
            return Plugin.of(candidate, facts, refusal, probe=probe, identity=identity)
        # Before it is probed: a change after that is noticed.
        self._seen = see_library(candidate.path)
        probe = self._the_prober().probe(candidate)
        facts = LoadFacts.of(probe)
        known = None if self._seen is None else self._cache.describe(probe, self._seen)
        if known is not None:
            self._cache.remember(known)
        trust = self._judged(candidate, facts)
        return Plugin.of(candidate, facts, trust, known=known, probe=probe, identity=identity)

    def _the_prober(self) -> Prober:
        if self._prober is None:
            # What reads libraries is imported where one is read; known plugins are not.
            from modular_tf.discovery.linking.host_offer import host_offer  # noqa: PLC0415
            from modular_tf.discovery.probe import Prober  # noqa: PLC0415

            self._prober = self._opened.enter_context(Prober(host_offer()))
        return self._prober

    def _judged(
        self, candidate: Candidate, facts: LoadFacts, finding: Finding | None = None
    ) -> TrustVerdict:
        if self._seen is not None and self._seen.sha256 is None and not facts.loadable:
            return self._judge.judge_unread(candidate)
        verdict = self._judge.judge(candidate, self._seen)
        if verdict.accepted and facts.loadable:
            verdict = self._judge.judge_companions(candidate, verdict, facts.companions)
            verdict = self._judge.judge_stacks(verdict, facts.executable_stacks)
            verdict = self._judge.judge_brought_along(candidate, verdict)
        if verdict.accepted and finding is not None and finding.opened:
            return self._judge.judge_opened(candidate, verdict, finding.opened)
        return verdict

    def _sha256_of(self, path: str, identity: FileIdentity) -> str | None:
        """Return the hash of the candidate under judgement, which was read for the cache."""
        seen = self._seen
        if seen is None or (seen.path, seen.identity) != (path, identity):
            return None
        return seen.sha256
