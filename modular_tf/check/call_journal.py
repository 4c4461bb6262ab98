"""Names of `calls`, until no module imports them from here."""

from modular_tf.check.calls import (
    CallJournal,
    once_each,
    outcome_of,
    shown,
)

__all__ = [
    "CallJournal",
    "once_each",
    "outcome_of",
    "shown",
]
