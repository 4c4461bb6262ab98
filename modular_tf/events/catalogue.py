"""Every event that the package logs: its name, its levels, its keys, and its meaning.

Names and keys are part of the public contract: a name is never used for anything else, and keys are
only added. Besides these keys, each event has `event`, `level`, `logger` and `timestamp`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EVENTS", "KnownEvent"]

_DEBUG, _INFO, _WARNING, _ERROR, _CRITICAL = "debug", "info", "warning", "error", "critical"


class KnownEvent(NamedTuple):
    """One kind of event.

    Attributes:
        name: Its dotted name.
        levels: The levels that it may have.
        keys: Its keys, which are always all there.
        meaning: What happened, in one sentence.
    """

    name: str
    levels: tuple[str, ...]
    keys: tuple[str, ...]
    meaning: str


EVENTS: tuple[KnownEvent, ...] = (
    KnownEvent(
        "plugin.processed",
        (_INFO, _WARNING),
        ("plugin", "path", "outcome", "reason", "rule"),
        "A plugin was processed; its state is `outcome`, and `reason` the first reason, or None.",
    ),
    KnownEvent(
        "plugin.decided",
        (_DEBUG, _INFO),
        ("plugin", "path", "stage", "passed", "rule", "text"),
        "A plugin passed `stage` or was rejected there; `rule` is the rule that decided, or None.",
    ),
    KnownEvent(
        "worker.started",
        (_INFO,),
        ("plugin", "run"),
        "A process was started for a plugin; `run` counts the processes of this worker.",
    ),
    KnownEvent(
        "worker.rests",
        (_INFO,),
        ("plugin", "run"),
        "The process of an instance that nobody uses was ended; the next call starts another.",
    ),
    KnownEvent(
        "worker.ended",
        (_WARNING,),
        ("plugin", "run", "message"),
        "The process of a plugin ended while it was used; `message` says how.",
    ),
    KnownEvent(
        "quarantine.added",
        (_WARNING,),
        ("plugin", "path", "rule"),
        "A plugin broke `rule` in another process and was quarantined: it does not run here.",
    ),
    KnownEvent(
        "quarantine.suspected",
        (_INFO,),
        ("plugin", "path"),
        "A process ended while it loaded a plugin; the plugin is tried before it is loaded again.",
    ),
    KnownEvent(
        "quarantine.released",
        (_INFO,),
        ("plugin", "path", "changes"),
        "The host changed, as `changes` says; a plugin left the quarantine and is tried again.",
    ),
    KnownEvent(
        "plugin.differs",
        (_WARNING,),
        ("plugin", "path", "message"),
        "A plugin offers other schemes or devices than its finding says; `message` names both.",
    ),
    KnownEvent(
        "scheme.registered",
        (_INFO,),
        ("plugin", "path", "scheme"),
        "A plugin serves a scheme from now on.",
    ),
    KnownEvent(
        "device_factory.registered",
        (_INFO,),
        ("plugin", "device_type", "platform", "priority"),
        "A plugin or Python object offers devices; the highest priority of a type serves.",
    ),
    KnownEvent(
        "kernels.registered",
        (_INFO,),
        ("plugin", "kernels"),
        "The kernels of a plugin serve from now on; how many they are.",
    ),
    KnownEvent(
        "kernel.not_done",
        (_WARNING,),
        ("plugin", "op", "kernel", "rule"),
        "A call has waited 10 s for an asynchronous kernel that has not run `done`; it goes on.",
    ),
    KnownEvent(
        "device_count.failed",
        (_WARNING,),
        ("plugin", "code", "reason"),
        "A platform failed to return its number of devices; none of its devices is listed.",
    ),
    KnownEvent(
        "memory_growth.forced",
        (_WARNING,),
        (),
        "A platform requires memory growth; the user's setting is overridden.",
    ),
    KnownEvent(
        "memory_limit.unknown",
        (_WARNING,),
        ("device",),
        "A device does not report how much memory it has, so no limit can be computed.",
    ),
    KnownEvent(
        "environment.misread",
        (_WARNING,),
        ("variable", "value"),
        "An environment variable has an invalid value; the default is used instead.",
    ),
    KnownEvent(
        "hook.failed",
        (_WARNING,),
        ("what", "error"),
        "A hook function of an installed package or of the application raised an exception.",
    ),
    KnownEvent(
        "fsspec.protocol_kept",
        (_INFO,),
        ("scheme", "owner"),
        "fsspec has an implementation of a scheme already (`owner`); it was not replaced.",
    ),
    KnownEvent(
        "fsspec.fallback",
        (_INFO,),
        ("scheme", "message"),
        "A scheme that no plugin serves was used first; `message` says which client serves it.",
    ),
    KnownEvent(
        "tensorflow.scheme_left",
        (_INFO,),
        ("scheme", "message"),
        "A scheme was not registered in TensorFlow; `message` says who has it, or why not.",
    ),
    KnownEvent(
        "tensorflow.upcall_failed",
        (_WARNING,),
        ("operation", "path", "error"),
        "A filesystem of Python raised what is no error of a filesystem; TensorFlow got INTERNAL.",
    ),
    KnownEvent(
        "tensorflow.file_lost",
        (_WARNING,),
        ("path", "error"),
        "TensorFlow dropped a file without closing it, and what was written could not be stored.",
    ),
    KnownEvent(
        "tensorflow.calls_left",
        (_WARNING,),
        ("count",),
        "The process ends while TensorFlow waits for calls of filesystems, 5 s after it began to.",
    ),
    KnownEvent(
        "storage.not_written",
        (_INFO,),
        ("path", "error"),
        "A file of this package could not be written; its content is computed again when needed.",
    ),
    KnownEvent(
        "storage.not_believed",
        (_WARNING,),
        ("path", "why", "rule"),
        "A file of this package is damaged, or another user could have changed it; it is not used.",
    ),
    KnownEvent(
        "plugin.appeared",
        (_INFO,),
        ("plugin", "path"),
        "A plugin's file was added while the service runs; `plugin.processed` comes before this.",
    ),
    KnownEvent(
        "plugin.replaced",
        (_INFO,),
        ("plugin", "path"),
        "A plugin's file was replaced, and its new library serves from now on.",
    ),
    KnownEvent(
        "plugin.kept",
        (_WARNING,),
        ("plugin", "path", "reason"),
        "A plugin's file was replaced by one that does not load; the old library goes on serving.",
    ),
    KnownEvent(
        "plugin.removed",
        (_INFO,),
        ("plugin", "path"),
        "A plugin's file was removed; only those who use the plugin already are served.",
    ),
    KnownEvent(
        "generation.closed",
        (_INFO,),
        ("plugin", "path", "errors"),
        "A plugin's old library was closed, since nothing of it is in use; `errors` were raised.",
    ),
    KnownEvent(
        "watch.failed",
        (_WARNING,),
        ("error",),
        "One round of watching for changed plugins failed; the next round looks again.",
    ),
    KnownEvent(
        "watch.waiting",
        (_INFO,),
        ("path", "reason"),
        "A file is not whole; it becomes a plugin when it is.",
    ),
    KnownEvent(
        "plugin.message",
        (_DEBUG, _INFO, _WARNING, _ERROR, _CRITICAL),
        ("plugin", "message", "severity", "vlog", "source", "line", "library", "thread", "written"),
        "A plugin logged something through the host runtime. `severity` is info, warning, error,"
        " fatal or vlog, then with the number `vlog`; `source` and `line` are of its sources, or"
        " None; `library` is the file whose code logged it, `thread` the system's number of the"
        " thread, `written` the time in seconds since 1970.",
    ),
    KnownEvent(
        "plugin.messages_dropped",
        (_WARNING,),
        ("count",),
        "Plugins logged faster than the log was written; `count` messages were dropped.",
    ),
)
