"""Rules of host callbacks."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_LOST = "What TensorFlow does when the stream gets there never happens, or happens twice."
_TOO_EARLY = "The callback sees, or frees, what the device still works on."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-278",
        "host_callback returns non-zero when it has taken the callback.",
        "TensorFlow takes TF_OK, which is 0, for a failure; the work of the stream fails.",
        "Return 1, not a status code.",
        _OBSERVED,
    ),
    Rule(
        "SE-279",
        "A callback that was taken is called once.",
        _LOST,
        "Call each callback once, whatever else is on the stream.",
        _HEADER,
    ),
    Rule(
        "SE-280",
        "The callbacks of a stream are called in order.",
        "Those who count on the order of a stream are wrong.",
        "Run callbacks by one thread per stream, or one behind the other.",
        _HEADER,
    ),
    Rule(
        "SE-281",
        "A callback is called when the work in front of it is done.",
        _TOO_EARLY,
        "Enqueue the callback on the stream.",
        _HEADER,
    ),
    Rule(
        "SE-282",
        "Work behind a callback waits until it has returned.",
        "The device uses what the callback has not prepared yet.",
        "Go on with the stream when the callback has returned.",
        _HEADER,
    ),
    Rule(
        "SE-283",
        "host_callback does not wait for the callback.",
        "The thread that feeds the stream stands still while the callback runs.",
        "Call it from a thread of the plugin's.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-284",
        "A callback that fails shows in the status of its stream, or of who waits for it.",
        "The failure is lost, and results that it spoiled are taken for good.",
        "Keep the first status that is not OK, for get_stream_status and block_host_until_done.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-285",
        "Callbacks of many streams are all called.",
        _LOST,
        "Let the queue of callbacks grow; drop none.",
        _HEADER,
    ),
    Rule(
        "SE-286",
        "A callback may enqueue work on another stream.",
        "Programs that continue on the device where the host was needed fail.",
        "Hold no lock of the device while a callback runs.",
        "host recommendation",
        Severity.WARNING,
    ),
    Rule(
        "SE-287",
        "Waiting for a stream waits for its callbacks too.",
        _TOO_EARLY,
        "Count a callback as work of its stream until it has returned.",
        _HEADER,
    ),
)
