"""The state that follows from what a plugin registered, what it was refused, and what it lost."""

from __future__ import annotations

import pytest

from modular_tf.rules import Violation
from modular_tf.rules.filesystem import scheme_taken
from modular_tf.service.report import NOTHING_LOST, Lost, Outcome, State, state_of

TAKEN = scheme_taken("s", "loser", "winner", "is taken by").at("register")
BROKEN = Violation("FS-012", "a message", "init")


@pytest.mark.parametrize(
    ("reasons", "state"),
    [
        ((TAKEN,), State.SHADOWED),
        ((TAKEN, TAKEN), State.SHADOWED),
        ((BROKEN,), State.FAILED),
        ((TAKEN, BROKEN), State.FAILED),
        ((BROKEN, TAKEN), State.FAILED),
    ],
)
def test_what_serves_nothing_is_shadowed_if_others_have_all_of_its_schemes(reasons, state):
    assert state_of(None, Outcome(reasons=reasons)) is state


@pytest.mark.parametrize(
    "registered", [Outcome(schemes=("s",)), Outcome(device_types=("T",)), Outcome(("s",), ("T",))]
)
def test_what_serves_anything_is_loaded(registered):
    for reasons in ((), (TAKEN,), (BROKEN,), (TAKEN, BROKEN)):
        assert state_of(None, registered._replace(reasons=reasons)) is State.LOADED


def test_the_end_decides_and_before_the_outcome_a_plugin_is_found():
    assert state_of(State.DISABLED, Outcome(("s",))) is State.DISABLED
    assert state_of(None, None) is State.FOUND


@pytest.mark.parametrize(
    ("registered", "lost", "state"),
    [
        (Outcome(("a", "b")), Lost(("a",), reasons=(TAKEN,)), State.LOADED),
        (Outcome(("a", "b")), Lost(("a", "b"), reasons=(TAKEN,)), State.SHADOWED),
        (Outcome(("a",)), Lost(("a",)), State.LOADED),
        (Outcome(("a",), ("T",)), Lost(("a",), reasons=(TAKEN,)), State.LOADED),
        (Outcome(("a",), ("T",)), Lost(("a",), State.DISABLED, (TAKEN,)), State.DISABLED),
        (Outcome(("a",), ("T",)), Lost((), State.SHADOWED, (TAKEN,)), State.LOADED),
        (Outcome((), ("T",)), Lost((), State.SHADOWED, (TAKEN,)), State.SHADOWED),
        (Outcome((), ("T",)), NOTHING_LOST, State.LOADED),
    ],
)
def test_a_plugin_serves_until_all_that_it_registered_is_lost(registered, lost, state):
    assert state_of(None, registered, lost) is state
