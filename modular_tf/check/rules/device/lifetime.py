"""Rules of the end: of one device among others, of the platform, of the process."""

from __future__ import annotations

from modular_tf.rules import Rule

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-180",
        "Destroying a device leaves the other devices of the platform working.",
        "One device that is closed takes the work on all others down.",
        "Keep what devices share until destroy_platform.",
        _HEADER,
    ),
    Rule(
        "SE-182",
        "A process that has destroyed everything ends with its own exit status.",
        "Each run seems to have failed: scripts and schedulers repeat it.",
        "Join threads in destroy_device; let destructors of the library do nothing twice.",
        _HEADER,
    ),
    Rule(
        "SE-183",
        "A process that has destroyed nothing ends with its own exit status.",
        "TensorFlow destroys nothing at its end, so each run of it seems to have failed.",
        "Let destructors of the library accept devices and streams that still exist.",
        _OBSERVED,
    ),
)
