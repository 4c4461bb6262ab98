"""An interrupt between the checks and the report takes nothing from the report."""

from __future__ import annotations

import pytest

from modular_tf.check import run as run_module
from modular_tf.check.calls import CallJournal
from modular_tf.check.job import Limits
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.plan import candidates_of
from modular_tf.check.run import CheckRun
from modular_tf.check.settings import CheckSettings
from tests.contrib.built_plugin import installed_plugin

FOUND = Outcome("LD-004", "", Pass.LIBRARY, Verdict.PASSED)


def _check(*names, only=(), **options):
    candidates, _ = candidates_of([str(installed_plugin(name)) for name in names])
    settings = CheckSettings(only=only)
    return run_module.check_plugins(candidates, settings, seed=1, limits=Limits(), **options)


@pytest.fixture
def interrupted_in(monkeypatch):
    """Have one outcome found of each plugin, and a call of a function interrupted."""

    def interrupt(name, number):
        function, calls = getattr(run_module, name), []

        def interrupted(*arguments, **options):
            calls.append(name)
            if len(calls) == number:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        monkeypatch.setattr(run_module, name, interrupted)

    monkeypatch.setattr(run_module, "run_checks", lambda *_: CheckRun((FOUND,)))
    return interrupt


@pytest.mark.parametrize(("name", "number"), [("with_named_frames", 1), ("plan_of", 2)])
def test_an_interrupt_before_the_second_plugin_leaves_the_outcomes_of_the_first(
    interrupted_in, name, number
):
    interrupted_in(name, number)
    report = _check("ram_filesystem", "posix_filesystem")

    assert report.interrupted
    assert [plugin.outcomes for plugin in report.plugins] == [(FOUND,)]


def test_an_interrupt_of_checks_in_this_process_leaves_the_outcomes():
    found = []

    def interrupt(_plan, outcome):
        found.append(outcome)
        raise KeyboardInterrupt

    only = ("LD-001", "LD-004")
    report = _check("ram_filesystem", only=only, on_outcome=interrupt, announce=found.append)

    assert report.interrupted
    assert [plugin.outcomes for plugin in report.plugins] == [tuple(found)]
    CallJournal().enter("a call after the run")  # which is announced to nobody
    assert len(found) == 1
