"""Rules of devices that many threads use, of several devices, and of the end of the process."""

from __future__ import annotations

from modular_tf.rules import Rule

_OBSERVED = "TensorFlow 2.21, observed"
_RACE = "Under load results are wrong or the process crashes, and never twice in the same way."
_ANY_THREAD = "TensorFlow calls from any thread: guard what calls share, in every function."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-293",
        "8 threads copy through 4 streams each, and each gets its own bytes.",
        _RACE,
        _ANY_THREAD,
        _OBSERVED,
    ),
    Rule(
        "SE-294",
        "Threads make, use and destroy streams at the same time.",
        _RACE,
        _ANY_THREAD,
        _OBSERVED,
    ),
    Rule(
        "SE-295",
        "Threads record, poll and destroy events of one stream at the same time.",
        _RACE,
        _ANY_THREAD,
        _OBSERVED,
    ),
    Rule(
        "SE-296",
        "Threads allocate, use and give back memory at the same time; no two get the same.",
        _RACE,
        _ANY_THREAD,
        _OBSERVED,
    ),
    Rule(
        "SE-297",
        "Threads and streams that wait for each other's events run in the order demanded.",
        _RACE,
        "Keep with each event the place where it was recorded, under a lock.",
        _OBSERVED,
    ),
    Rule(
        "SE-298",
        "Two devices of the platform work beside each other, and do not mix their memory.",
        "Programs on one device spoil what runs on another.",
        "Keep all state with the device that each function is given; use no globals.",
        _OBSERVED,
    ),
    Rule(
        "SE-299",
        "A process may end while work is outstanding.",
        "TensorFlow destroys nothing at the end: programs crash after their last line.",
        "Let destructors of the library wait for threads, or leave what they use alive.",
        _OBSERVED,
    ),
)
