"""How far a library comes when it is loaded, and what that makes of the checks of it."""

from __future__ import annotations

from modular_tf.check.catalogue import all_checks
from modular_tf.check.options import Options
from modular_tf.check.outcome import BAD, Pass, Verdict
from tests.check.trying import job_of

_LONG_S, _SHORT_S = 60, 1


_FAULTS = {
    "constructor-crashes": ("LD-050", Verdict.CRASHED),
    "init-plugin-crashes": ("FS-130", Verdict.CRASHED),
    "init-plugin-hangs": ("FS-130", Verdict.HUNG),
    "init-plugin-throws": ("LD-052", Verdict.FAILED),
}


def _job(library, ids, load_seconds=_LONG_S):
    options = Options(load_seconds=load_seconds)
    return job_of(library, ids, Pass.LIBRARY, scheme=None, options=options)


def test_one_fault_is_one_bad_verdict(fixture_plugin, processes):
    ids = [check.id for check in all_checks().values() if check.group == "library"]
    jobs = [
        _job(fixture_plugin(name), ids, _SHORT_S if verdict is Verdict.HUNG else _LONG_S)
        for name, (_, verdict) in _FAULTS.items()
    ]
    results = processes.run(jobs)

    for (check_id, verdict), result in zip(_FAULTS.values(), results, strict=True):
        assert result.fault is None
        outcomes = {outcome.check_id: outcome.verdict for outcome in result.outcomes}
        bad = {name: found for name, found in outcomes.items() if found in BAD}
        assert bad == {check_id: verdict}
        assert outcomes["FS-105"] is Verdict.BLOCKED
