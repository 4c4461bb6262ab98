"""Rules of events: marks in streams."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_TOO_EARLY = "Work runs before what it needs is there: results are wrong now and then."
_STUCK = "The program stands still, with no error."
_LAST = "An event stands for the place where it was recorded last."
_FREED_EARLY = "TensorFlow gives buffers back behind events: the device still uses them."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-253",
        "An event becomes COMPLETE when its stream has passed it.",
        "TensorFlow polls the event for ever, and holds what depends on it.",
        "Report SE_EVENT_COMPLETE when the work in front of the event is done.",
        _OBSERVED,
    ),
    Rule(
        "SE-254",
        "An event is PENDING while work in front of it is outstanding.",
        _FREED_EARLY,
        "Report SE_EVENT_COMPLETE only when all work in front of the event is done.",
        _OBSERVED,
    ),
    Rule(
        "SE-255",
        "The status of a recorded event is PENDING or COMPLETE, never UNKNOWN or ERROR.",
        "TensorFlow aborts the whole process.",
        "Report SE_EVENT_PENDING while nothing else is known.",
        _OBSERVED,
    ),
    Rule(
        "SE-256",
        "An event that was COMPLETE stays so until it is recorded again.",
        "Those who poll later wait for work that was done long ago.",
        "Keep the known status; do not ask the stream, which continues.",
        _HEADER,
    ),
    Rule(
        "SE-257",
        "Behind a COMPLETE event the bytes of copies to the host are there.",
        "Results are read before they have arrived.",
        "Report SE_EVENT_COMPLETE only when the host can see what was copied.",
        _OBSERVED,
    ),
    Rule(
        "SE-258",
        "The status of an event that was never recorded is COMPLETE.",
        "A host that polls it waits for ever, or takes the work for failed.",
        "There is nothing outstanding: report SE_EVENT_COMPLETE.",
        "host recommendation",
        Severity.WARNING,
    ),
    Rule(
        "SE-259",
        "Waiting for an event that was never recorded holds up nothing.",
        _STUCK,
        "There is nothing to wait for: do nothing, and return OK.",
        _HEADER,
    ),
    Rule(
        "SE-260",
        "Work behind wait_for_event waits for the event.",
        _TOO_EARLY,
        "Let the stream wait for the mark where the event was recorded.",
        _HEADER,
    ),
    Rule(
        "SE-261",
        "wait_for_event does not block its caller.",
        "The host stands still where only the stream should wait.",
        "Enqueue the wait on the stream.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-262",
        "An event that is recorded again is PENDING again until its stream gets there.",
        "TensorFlow uses its events again: " + _FREED_EARLY,
        _LAST,
        _OBSERVED,
    ),
    Rule(
        "SE-263",
        "Recording an event again does not disturb those who wait for its former place.",
        _STUCK,
        "Let those who wait keep the place that they wait for, not the event.",
        _HEADER,
    ),
    Rule(
        "SE-264",
        "block_host_for_event waits until the event is passed.",
        "The host reads results that are not there yet.",
        "Wait for the mark where the event was recorded.",
        _HEADER,
    ),
    Rule(
        "SE-265",
        "block_host_for_event does not wait for work behind the event.",
        _STUCK,
        "Wait for the mark of the event, not for its stream.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-266",
        "An event may be destroyed while it is pending; those who wait for it still do.",
        _TOO_EARLY,
        "Let those who wait keep the mark alive.",
        _HEADER,
    ),
    Rule(
        "SE-267",
        "2000 events can be pending at once.",
        "TensorFlow makes as many as it has work outstanding: it fails under load.",
        "Take events from the heap, not from a fixed table.",
        _OBSERVED,
    ),
    Rule(
        "SE-268",
        "Any number of streams may wait for one event.",
        _TOO_EARLY,
        "Wake all who wait when the event is passed, and keep no single waiter.",
        _HEADER,
    ),
    Rule(
        "SE-269",
        "Two streams that wait for events of each other go on.",
        _STUCK,
        "A wait is for the place where the event was recorded, not for its stream.",
        _HEADER,
    ),
    Rule(
        "SE-270",
        "Where an event is COMPLETE, the earlier events of its stream are too.",
        "TensorFlow looks at the oldest event of a stream first, and holds what lies behind it.",
        "Pass the events of a stream in order.",
        _OBSERVED,
    ),
    Rule(
        "SE-271",
        "A stream that waits for an event of its own continues.",
        _STUCK,
        "What is in front of the event is before later work anyway: do nothing.",
        _HEADER,
    ),
    Rule(
        "SE-272",
        "An event that is recorded on another stream stands for that stream.",
        "Waiting ends too late or too early, as events go from stream to stream.",
        _LAST,
        _HEADER,
    ),
)
