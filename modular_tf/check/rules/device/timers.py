"""Rules of timers."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "device.h"
_WRONG_CHOICE = "Those who choose the fastest algorithm by the timer choose the wrong one."
_NS = "Count nanoseconds."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-273",
        "A timer shows no more time than has passed.",
        _WRONG_CHOICE,
        _NS + " Where the end came before the start by rounding, report 0.",
        _HEADER,
    ),
    Rule(
        "SE-274",
        "A timer shows at least the time that the work between start and stop took.",
        _WRONG_CHOICE,
        _NS + " Read the clock when the stream gets there, not in the call.",
        _HEADER,
    ),
    Rule(
        "SE-275",
        "A timer that is started again measures anew.",
        _WRONG_CHOICE,
        "Let start_timer forget what was measured before.",
        _HEADER,
    ),
    Rule(
        "SE-276",
        "A timer round another one shows no less than that.",
        _WRONG_CHOICE,
        "Give each timer its own marks.",
        _HEADER,
    ),
    Rule(
        "SE-277",
        "A timer may be destroyed while its stream has not got to it.",
        "The stream writes into freed memory, and the process crashes.",
        "Keep alive what the stream has yet to write, until it has.",
        _HEADER,
    ),
)
