"""An interrupt between the checks and the report takes nothing from the report."""

from __future__ import annotations

import pytest

from modular_tf.check import run as run_module
from modular_tf.check.job import Limits
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.plan import candidates_of
from modular_tf.check.run import CheckRun
from modular_tf.check.settings import CheckSettings
from tests.contrib.built_plugin import installed_plugin

FOUND = Outcome("LD-004", "", Pass.LIBRARY, Verdict.PASSED)


@pytest.fixture
def check(monkeypatch):
    """Check two plugins, of each of which one outcome is found."""
    monkeypatch.setattr(run_module, "run_checks", lambda *_: CheckRun((FOUND,)))
    plugins = [str(installed_plugin(name)) for name in ("ram_filesystem", "posix_filesystem")]
    candidates, _ = candidates_of(plugins)

    def run():
        return run_module.check_plugins(candidates, CheckSettings(), seed=1, limits=Limits())

    return run


def test_an_interrupt_while_frames_are_named_keeps_the_outcomes(check, monkeypatch):
    pending = [KeyboardInterrupt]

    def interrupted_once(outcomes, _):
        if pending:
            raise pending.pop()
        return tuple(outcomes)

    monkeypatch.setattr(run_module, "with_named_frames", interrupted_once)

    report = check()

    assert report.interrupted
    assert [plugin.outcomes for plugin in report.plugins] == [(FOUND,)]


def test_an_interrupt_before_the_second_plugin_keeps_the_report_of_the_first(check, monkeypatch):
    plan_of, planned = run_module.plan_of, []

    def interrupted(*arguments, **options):
        if planned:
            raise KeyboardInterrupt
        planned.append(plan_of(*arguments, **options))
        return planned[0]

    monkeypatch.setattr(run_module, "plan_of", interrupted)
    report = check()

    assert report.interrupted
    assert [plugin.outcomes for plugin in report.plugins] == [(FOUND,)]


def test_an_interrupt_of_checks_in_this_process_keeps_the_outcomes():
    candidates, _ = candidates_of([str(installed_plugin("ram_filesystem"))])
    settings, found = CheckSettings(only=("LD-001", "LD-004")), []

    def interrupt(_plan, outcome):
        found.append(outcome)
        raise KeyboardInterrupt

    report = run_module.check_plugins(
        candidates, settings, seed=1, limits=Limits(), on_outcome=interrupt, announce=found.append
    )

    assert report.interrupted
    assert [plugin.outcomes for plugin in report.plugins] == [tuple(found)]
