"""Rules of streams: work in order, and dependencies between streams."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "device.h"
_OBSERVED = "TensorFlow 2.21, observed"
_TOO_EARLY = "Work runs before what it needs is there: results are wrong now and then."
_STUCK = "The program stands still, with no error."
_MARKS = "Let the dependent stream wait for a mark at the end of what the other holds now."

RULES: tuple[Rule, ...] = (
    Rule(
        "SE-235",
        "The status of a new stream is OK.",
        "The first operation of the device fails.",
        "Set the status to TF_OK while nothing went wrong.",
        _HEADER,
    ),
    Rule(
        "SE-236",
        "Waiting for a stream without work returns at once, again and again.",
        "Programs that wait where there is nothing to wait for fail.",
        "Return OK where the stream has no work.",
        _HEADER,
    ),
    Rule(
        "SE-237",
        "get_stream_status does not wait for the stream.",
        "Threads that only look stand still until the device is done.",
        "Report what is known so far.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-238",
        "200 streams can be made and destroyed, one after the other.",
        "A long-running program gets no stream any more.",
        "Give back in destroy_stream all that create_stream took.",
        _HEADER,
    ),
    Rule(
        "SE-239",
        "64 streams work at once.",
        "Programs with several devices and threads get no stream.",
        "Share queues of the hardware between streams where they are few.",
        "host recommendation",
        Severity.WARNING,
    ),
    Rule(
        "SE-240",
        "A stream continues while another one is blocked.",
        "Copies do not run beside computations, and a callback that waits stops the device.",
        "Give each stream a queue of its own.",
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-241",
        "The copies of a stream happen in the order in which they were enqueued.",
        _TOO_EARLY,
        "Start each piece of work when the one before it on the stream is done.",
        _HEADER,
    ),
    Rule(
        "SE-242",
        "A stream takes a thousand pieces of work without losing one.",
        "What a program enqueues ahead of the device is lost.",
        "Let the queue grow, or let the caller wait; drop nothing.",
        _HEADER,
    ),
    Rule(
        "SE-243",
        "block_host_until_done waits until the work of the stream is done.",
        "The host reads results that are not there yet.",
        "Wait for a mark at the end of the stream.",
        _HEADER,
    ),
    Rule(
        "SE-244",
        "Work behind create_stream_dependency waits for what the other stream held.",
        _TOO_EARLY,
        _MARKS,
        _OBSERVED,
    ),
    Rule(
        "SE-245",
        "create_stream_dependency does not block its caller.",
        "TensorFlow makes one before each copy: the host then waits for the device each time.",
        _MARKS,
        _HEADER,
        Severity.WARNING,
    ),
    Rule(
        "SE-246",
        "A stream that is made dependent on itself continues.",
        _STUCK,
        "What the stream holds is before its later work anyway: do nothing.",
        _HEADER,
    ),
    Rule(
        "SE-247",
        "Dependencies hold along a chain of streams.",
        _TOO_EARLY,
        "Let a mark wait for the waits before it too.",
        _HEADER,
    ),
    Rule(
        "SE-248",
        "Two streams that depend on each other go on.",
        _STUCK,
        "A dependency is on what the other stream holds now, not on what comes later.",
        _HEADER,
    ),
    Rule(
        "SE-249",
        "A dependency does not wait for what the other stream is given later.",
        _STUCK,
        _MARKS,
        _HEADER,
    ),
    Rule(
        "SE-250",
        "The work of a stream is completed even if the stream is destroyed before.",
        "The last results of a stream are lost.",
        "Let destroy_stream wait, or let the queue end by itself.",
        "host recommendation",
        Severity.WARNING,
    ),
    Rule(
        "SE-251",
        "synchronize_all_activity waits for all streams.",
        "TensorFlow copies results to the host behind it: they are not there yet.",
        "Wait for each stream of the device.",
        _OBSERVED,
    ),
    Rule(
        "SE-252",
        "synchronize_all_activity succeeds where no stream is.",
        "TensorFlow calls it before each copy to the host, whatever was used so far.",
        "Return OK where there is nothing to wait for.",
        _OBSERVED,
    ),
    Rule(
        "SE-300",
        "Whatever work is enqueued, memory holds what some order that is allowed leaves there.",
        "Programs compute with data that is not there yet, or with another's.",
        "Replay the sequence that is named, in a debugger if need be; it is as short as it gets.",
        "the other rules of devices, taken together",
    ),
)
