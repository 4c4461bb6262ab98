"""Which checks a library is to go through, on what, and in which processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job
from modular_tf.check.load_trial import first_contact_of
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from modular_tf.discovery.candidate import Kind, LoadFacts, Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.errors import ConfigError, NotFoundError
from modular_tf.first_contact.finding import Offer
from modular_tf.native.sanitizers import SANITIZERS, is_sanitizer_library, sanitizer_of_process

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.settings import CheckSettings
    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding
    from modular_tf.rules import Violation

OF_ANY_KIND = "library"
"""The kind of the checks of files and of loading, which concern plugins of every kind."""

DEVICE_OPERATIONS: Mapping[str, str] = {
    "SE-135": "allocate",
    "SE-205": "copy",
    "SE-204": "copy_within",
    "SE-223": "fill",
    "SE-226": "fill",
    "SE-253": "event",
    "SE-273": "timer",
    "SE-279": "callback",
}
"""The checks that try whether a device works at all, with the operation that each is about."""

_KINDS = {"filesystem": Kind.FILESYSTEM, "device": Kind.DEVICE, "kernel": Kind.KERNEL}
_CXX_LIBRARIES = ("libstdc++.so", "libc++.so")
# Python frees little at its end.
_SANITIZER_OPTIONS = {"AddressSanitizer": " ASAN_OPTIONS=detect_leaks=0"}


# -- libraries -------------------------------------------------------------------------------------


def candidates_of(targets: Iterable[str]) -> tuple[list[Candidate], list[Violation]]:
    """Return the libraries that names stand for, each once, and what went wrong on the way.

    A target is a file, a folder (all libraries in it), or a name as `modular-tf list` has it.
    Raises `NotFoundError` where it is none of them.
    """
    paths: list[str] = []
    names: list[str] = []
    for target in targets:
        (paths if os.path.lexists(target) or os.sep in target else names).append(target)
    searched = SearchPaths.of_process(arguments=paths)
    by_path = discover(searched._replace(sources=frozenset({Source.ARGUMENT})))
    found = {candidate.identity: candidate for candidate in by_path.candidates}
    if names:
        known = {each.name: each for each in discover(SearchPaths.of_process()).candidates}
        for name in names:
            if name not in known:
                raise NotFoundError(
                    "no such file, and no plugin of that name; "
                    f"`modular-tf list` names {', '.join(sorted(known)) or 'none'}",
                    path=name,
                )
            found.setdefault(known[name].identity, known[name])
    return list(found.values()), list(by_path.problems)


def _lacking_runtime(probe: Probe) -> str | None:
    """Return what a report says where this process lacks the runtime of a plugin's sanitizer."""
    symbols = () if probe.elf is None else {symbol.name for symbol in probe.elf.undefined}
    sanitizer = next((name for symbol, name in SANITIZERS.items() if symbol in symbols), None)
    if sanitizer is None or sanitizer == sanitizer_of_process():
        return None
    runtimes = [it.path for it in probe.libraries if is_sanitizer_library(it.name)]
    # The runtime looks for functions of the C++ library at once.
    cxx = [it.path for it in probe.libraries if it.name.startswith(_CXX_LIBRARIES)]
    preloads = ":".join(runtimes + cxx) if runtimes else "the runtime's shared library"
    return (
        f"built with {sanitizer}, whose runtime must be there before anything else: run this again "
        f"with LD_PRELOAD={preloads}{_SANITIZER_OPTIONS.get(sanitizer, '')} before it"
    )


# -- checks ----------------------------------------------------------------------------------------


def selected(settings: CheckSettings, kinds: Iterable[str]) -> list[Check]:
    """Return the checks to try, in the order of the catalogue.

    Checks of loading concern all kinds. A check that `only` names by its id is tried whatever its
    level and the profile. Of a group, or what a glob matches, checks above the level and those that
    the profile excuses are left out; where nothing else is in it, all of it is tried. Raises
    `ConfigError` where a name of `only` or `skip` matches no check at all.
    """
    checks = all_checks().values()

    def matching(name: str) -> list[Check]:
        return [
            check
            for check in checks
            if fnmatchcase(check.id, name.upper()) or fnmatchcase(check.group, name.lower())
        ]

    def usual(checks: Iterable[Check]) -> list[Check]:
        excuse = settings.profile.excuse
        return [c for c in checks if c.level <= settings.level and excuse(c.traits) != "skip"]

    named = {name: matching(name) for name in (*settings.only, *settings.skip)}
    for name, found in named.items():
        if not found:
            raise ConfigError(f"no check and no group of checks is named {name!r}")
    wanted = {c.id for name in settings.only for c in usual(named[name]) or named[name]}
    if not settings.only:
        wanted = {check.id for check in usual(checks)}
    wanted -= {check.id for name in settings.skip for check in named[name]}
    of_kinds = {*kinds, OF_ANY_KIND}
    return [check for check in checks if check.kind in of_kinds and check.id in wanted]


def _ways(check: Check, settings: CheckSettings) -> list[Pass]:
    """Return the ways in which a check is tried: the first that it has, or all."""
    ways = [way for way in Pass if way in check.ways]
    return ways if settings.through_host else ways[:1]


# -- plans -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginPlan:
    """What one plugin is to go through.

    Attributes:
        path: The library's file, absolute.
        name: Its name for users.
        kinds: What it is: `filesystem`, `device`, `kernel`; none where its bytes do not say.
        jobs: Its processes, in the order of a report.
        seed: Of all that is random.
        finding: What it registers, as far as that was needed to know.
        lacks: What this process was started without, as a report says it; None for nothing.
        unresolved: How many outcomes the schemes that were asked for would have, were one there.
    """

    path: str
    name: str
    kinds: tuple[str, ...]
    jobs: tuple[Job, ...]
    seed: int = 0
    finding: Finding | None = None
    lacks: str | None = None
    unresolved: int = 0

    @property
    def number_of_checks(self) -> int:
        """How many outcomes there will be."""
        return sum(len(job.checks) for job in self.jobs)


def plan_of(probe: Probe, settings: CheckSettings, *, seed: int) -> PluginPlan:
    """Plan the checks of one library.

    What it registers is found out in a child process, where checks are wanted that need to know.
    Raises `ConfigError` where a name in the settings matches no check.
    """
    kinds = tuple(name for name, kind in _KINDS.items() if kind in probe.kinds)
    checks = selected(settings, kinds or tuple(_KINDS))
    if not kinds:  # it is no plugin: the checks of files say why
        checks = [check for check in checks if check.kind == OF_ANY_KIND]
    needs_offer = any(check.ways != {Pass.LIBRARY} for check in checks)
    facts = LoadFacts.of(probe)
    finding = first_contact_of(probe, facts) if needs_offer and facts.loadable else None
    offer = (finding and finding.offer) or Offer()
    schemes = schemes_to_try(offer, settings)

    def target(kind: str, reached: Pass, **subject: Any) -> Target:
        return target_of(probe, settings, kind, reached, seed=seed, **subject)

    def targets(kind: str) -> Iterator[tuple[Target, str]]:
        """Yield what checks of a kind work on, each with what a report calls it."""
        yield target(kind, Pass.LIBRARY), ""
        if kind == "kernel" and offer.kernels:
            yield target(kind, Pass.HOST), "kernels"
        for reached in (Pass.RAW, Pass.HOST):
            if kind == "filesystem":
                for scheme in schemes:
                    name = f"{scheme}://" if scheme else "local paths"
                    yield target(kind, reached, scheme=scheme), name
            elif kind == "device" and offer.platform is not None:
                for ordinal in settings.for_checks.ordinals:
                    name = f"{offer.platform.device_type}:{ordinal}"
                    yield target(kind, reached, ordinal=ordinal), name

    jobs: list[Job] = []
    for kind in dict.fromkeys(check.kind for check in checks):
        for each, subject in targets(kind):
            groups: dict[str, list[str]] = {}
            for check in checks:
                if check.kind == kind and each.reached in _ways(check, settings):
                    groups.setdefault(check.group, []).append(check.id)
            # Checks of a device have it to themselves: they fill its memory, and count its use.
            alone = "device" if each.ordinal is not None else None
            jobs += [Job(each, subject, tuple(ids), {}, alone) for ids in groups.values()]

    ways = [{*_ways(c, settings)} - {Pass.LIBRARY} for c in checks if c.kind == "filesystem"]
    return PluginPlan(
        path=probe.candidate.path,
        name=probe.candidate.name,
        kinds=kinds,
        jobs=tuple(jobs),
        seed=seed,
        finding=finding,
        lacks=_lacking_runtime(probe),
        unresolved=sum(map(len, ways)) if offer.schemes and not schemes else 0,
    )


def target_of(
    probe: Probe,
    settings: CheckSettings,
    kind: str,
    reached: Pass,
    *,
    scheme: str | None = None,
    ordinal: int | None = None,
    seed: int = 0,
) -> Target:
    """Return what checks of one kind work on, in one way."""
    facts = LoadFacts.of(probe)
    return Target(
        path=probe.candidate.path,
        kind=kind,
        reached=reached,
        scheme=scheme,
        ordinal=ordinal,
        root=settings.root,
        companions=facts.companions,
        absent=facts.absent,
        seed=seed,
        options=settings.for_checks,
        repeated_by=repeated_by(settings, seed),
    )


def repeated_by(settings: CheckSettings, seed: int) -> tuple[str, ...]:
    """Return the options of `modular-tf check` that try a check once more in the same way."""
    return "--seed", str(seed), *settings.again


def schemes_to_try(offer: Offer, settings: CheckSettings) -> list[str]:
    """Return the schemes of a plugin that are tried: those that are wanted, or all."""
    wanted = wanted_schemes(settings)
    return [scheme for scheme in offer.schemes if wanted is None or scheme in wanted]


def wanted_schemes(settings: CheckSettings) -> Sequence[str] | None:
    """Return the schemes that the user names, or the one of the root; None for all of a plugin."""
    wanted = settings.for_checks.schemes
    if wanted is None and settings.root is not None:
        named, separator, _ = settings.root.partition("://")
        return [named if separator else ""]
    return wanted
