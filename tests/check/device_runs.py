"""Trying all checks of a level on a device plugin, as `modular-tf check` does."""

from __future__ import annotations

from dataclasses import replace

from modular_tf.check.plan import candidates_of, plan_of
from modular_tf.check.report.report import PluginReport
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober

_SEED = 7
_OPTIONS = {"pressure_mib": 32}


def report_on(library, processes, settings, environment=None):
    """Try the checks that settings ask for, in processes that many plugins share.

    Args:
        library: The plugin.
        processes: Where checks are tried.
        settings: What is wanted.
        environment: Variables of the processes that load the plugin for checks.
    """
    settings = replace(settings, through_host=True, options={**_OPTIONS, **settings.options})
    (candidate,), problems = candidates_of([str(library)])
    assert problems == []
    with Prober(host_exports()) as prober:
        plan = plan_of(prober.probe(candidate), settings, seed=_SEED)
    # Of these plugins, each process has devices of its own: none needs them to itself.
    jobs = [replace(job, environment=environment or {}, alone=None) for job in plan.jobs]
    results = processes.run(jobs)
    assert [result.fault for result in results if result.fault is not None] == []
    return PluginReport(
        path=plan.path,
        name=plan.name,
        kinds=plan.kinds,
        profile=settings.profile.name,
        level=settings.level,
        seed=plan.seed,
        outcomes=tuple(outcome for result in results for outcome in result.outcomes),
    )
