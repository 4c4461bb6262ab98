"""The state that follows from what a plugin registered, what it was refused, and what it lost."""

from __future__ import annotations

import pytest

from modular_tf.rules import Violation
from modular_tf.rules.filesystem import scheme_taken
from modular_tf.service.report import NOTHING_LOST, Lost, Outcome, State, state_of

TAKEN = scheme_taken("s", "loser", "winner", "is taken by").at("register")
BROKEN = Violation("FS-012", "a message", "init")


SCHEME, DEVICES, BOTH = Outcome(("a",)), Outcome((), ("T",)), Outcome(("a",), ("T",))
TWO_SCHEMES = Outcome(("a", "b"))


@pytest.mark.parametrize(
    ("registered", "reasons", "lost", "state"),
    [
        # What serves nothing is shadowed if others have all of its schemes.
        (Outcome(), (TAKEN, TAKEN), NOTHING_LOST, State.SHADOWED),
        (Outcome(), (BROKEN,), NOTHING_LOST, State.FAILED),
        (Outcome(), (TAKEN, BROKEN), NOTHING_LOST, State.FAILED),
        # What serves anything is loaded.
        (SCHEME, (TAKEN, BROKEN), NOTHING_LOST, State.LOADED),
        (DEVICES, (BROKEN,), NOTHING_LOST, State.LOADED),
        # It serves until all that it registered is lost.
        (TWO_SCHEMES, (), Lost(("a",), reasons=(TAKEN,)), State.LOADED),
        (TWO_SCHEMES, (), Lost(("a", "b"), reasons=(TAKEN,)), State.SHADOWED),
        (SCHEME, (), Lost(("a",)), State.LOADED),
        (BOTH, (), Lost(("a",), reasons=(TAKEN,)), State.LOADED),
        (BOTH, (), Lost(("a",), State.DISABLED, (TAKEN,)), State.DISABLED),
        (BOTH, (), Lost((), State.SHADOWED, (TAKEN,)), State.LOADED),
        (DEVICES, (), Lost((), State.SHADOWED, (TAKEN,)), State.SHADOWED),
    ],
)
def test_what_a_plugin_registered_and_lost_decides_its_state(registered, reasons, lost, state):
    assert state_of(None, registered._replace(reasons=reasons), lost) is state
