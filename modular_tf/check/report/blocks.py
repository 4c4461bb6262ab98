"""Why checks were blocked, as a whole run knows it: a process knows its own checks alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, CONCLUSIVE, Outcome, Pass, Verdict
from modular_tf.check.target import NAME_A_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

_IDS = re.compile(r"\b[A-Z]{2}-[0-9]{3}\b")
_REFERENCE = re.compile(rf": see (?:(?:, | and | to )?{_IDS.pattern})+$")
_ENDED = {*BAD, Verdict.KNOWN} - {Verdict.FAILED}  # the root itself may have been too much


def with_known_causes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes whose blocked checks name no cause that the others disprove.

    A check is referred to only where something was found by it, and a root is asked for only where
    none worked: what is left then is what the plugin said, as `found`.
    """
    known = list(outcomes)
    found = {it.check_id for it in known if it.verdict in CONCLUSIVE - {Verdict.PASSED}}
    worked = {
        it.subject
        for it in known
        if it.reached is not Pass.LIBRARY and it.verdict in CONCLUSIVE - _ENDED
    }

    def of_run(outcome: Outcome) -> Outcome:
        if outcome.verdict is not Verdict.BLOCKED:
            return outcome
        message = outcome.message
        if outcome.subject in worked:
            message = message.removesuffix(NAME_A_ROOT)
        if reference := _REFERENCE.search(message):
            ids = set(_IDS.findall(reference[0]))
            if ids <= all_checks().keys() and not ids & found:  # others are rules of the loader
                message = message[: reference.start()]
        return outcome if message == outcome.message else replace(outcome, message=message)

    return [of_run(outcome) for outcome in known]
