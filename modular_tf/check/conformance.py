"""A whole run: from the plugins that a user names to the report on them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.check.excuses import excused, outdated
from modular_tf.check.limits import Limits
from modular_tf.check.outcome import Verdict
from modular_tf.check.planning import number_of_checks, plan_of, wanted_schemes
from modular_tf.check.report.native_frames import with_named_frames
from modular_tf.check.report.report import PluginReport, Report
from modular_tf.check.run import InterruptedRun, run_checks
from modular_tf.check.settings import repeated_by
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.planning import PluginPlan
    from modular_tf.check.run import CheckRun
    from modular_tf.check.settings import CheckSettings
    from modular_tf.discovery.candidate import Candidate


def check_plugins(
    candidates: Sequence[Candidate],
    settings: CheckSettings,
    *,
    seed: int,
    limits: Limits,
    tell: Callable[[PluginPlan, Outcome], None] | None = None,
) -> Report:
    """Check libraries, one after the other; this process maps none of them.

    Args:
        candidates: The libraries.
        settings: What the user wants.
        seed: Of all that is random.
        limits: How long checks may take, and how many processes there may be.
        tell: Is called with each outcome as soon as it is known, as the settings see it.

    Returns:
        The results; where the user interrupts the run, those that were known by then.

    Raises:
        ConfigError: A name in the settings matches no check.
        OSError: No process can be started.
    """
    begun = time.monotonic()
    reports: list[PluginReport] = []
    with Prober(host_exports()) as prober:
        for candidate in candidates:
            try:
                plan = plan_of(prober.probe(candidate), settings, seed=seed)
                reports.append(_checked(plan, settings, limits, tell))
            except InterruptedRun as interrupted:
                seconds = time.monotonic() - begun
                reports.append(_report(plan, settings, limits, interrupted.run, seconds))
                return Report(tuple(reports), seconds, interrupted=True)
            except KeyboardInterrupt:  # before the checks of this one
                return Report(tuple(reports), time.monotonic() - begun, interrupted=True)
    return Report(tuple(reports), time.monotonic() - begun)


def _checked(
    plan: PluginPlan,
    settings: CheckSettings,
    limits: Limits,
    tell: Callable[[PluginPlan, Outcome], None] | None,
) -> PluginReport:
    begun = time.monotonic()

    def heard(outcome: Outcome) -> None:
        if tell is not None:
            tell(plan, excused(outcome, settings))

    run = run_checks(plan, limits, heard)
    try:
        return _report(plan, settings, limits, run, time.monotonic() - begun)
    except KeyboardInterrupt:  # while frames are named, which may take long
        raise InterruptedRun(run) from None


def _report(
    plan: PluginPlan, settings: CheckSettings, limits: Limits, run: CheckRun, seconds: float
) -> PluginReport:
    files = {plan.path, *(file for target, _ in plan.steps for file in target.companions)}
    told = with_named_frames(run.outcomes, files)
    found = [excused(outcome, settings) for outcome in told]
    return PluginReport(
        path=plan.path,
        name=plan.name,
        kinds=plan.kinds,
        profile=settings.profile.name,
        level=settings.level,
        seed=plan.seed,
        outcomes=tuple(found),
        outdated=tuple(outdated(settings.known, found)),
        remarks=(*run.absent_stores, *_remarks(plan, found, settings)),
        seconds=seconds,
        root=settings.root,
        repeated_by=(*repeated_by(settings, plan.seed), *_waiting(limits)),
        faults=tuple(map(str, run.faults)),
        unanswered=number_of_checks(plan) - len(found) + plan.untried,
    )


def _waiting(limits: Limits) -> tuple[str, ...]:
    """Return the option that has another run wait as long for each check."""
    return () if limits.patience == Limits().patience else ("--patience", f"{limits.patience:g}")


def _remarks(
    plan: PluginPlan, outcomes: Sequence[Outcome], settings: CheckSettings
) -> Iterator[str]:
    """Yield why less could be checked than the plugin has."""
    if not plan.kinds:
        yield "exports no entry point of a plugin, so only the file itself was looked at"
    if plan.lacks is not None:
        yield plan.lacks
    for known in settings.known:
        subjects = {one.subject for one in outcomes if one.check_id == known.check_id}
        if subjects and known.subject is not None and known.subject not in subjects:
            tried = " and ".join(sorted(subjects))
            yield f"the known {known.check_id} is of {known.subject!r}, and was tried on {tried}"
    offered = plan.offered
    if offered is None:
        return
    if offered.incident is not None:
        yield f"what it registers is not known: {offered.incident.violation.message}"
    elif not (offered.schemes or offered.kernels) and offered.device_type is None:
        yield "registers nothing that could be tried"
    elif plan.untried:
        served, wanted = (
            " and ".join(repr(scheme) for scheme in schemes) or "none"
            for schemes in (offered.schemes, wanted_schemes(settings) or ())
        )
        yield f"serves the schemes {served}, and of those that are asked for none: {wanted}"
    for subject in dict.fromkeys(one.subject for one in outcomes if one.subject):
        of_it = [one for one in outcomes if one.subject == subject]
        if all(one.verdict is Verdict.SKIPPED for one in of_it):
            yield f"nothing of {subject} could be tried: {of_it[0].message}"
    for note in offered.notes:
        rule = "" if note.rule is None else f"{note.rule}: "
        yield f"as a host sees it: {rule}{note.message}"
