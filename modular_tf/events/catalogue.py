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
        "A plugin's way ended in the state `outcome`; `reason` is the first of several, or None.",
    ),
    KnownEvent(
        "plugin.decided",
        (_DEBUG, _INFO),
        ("plugin", "path", "stage", "passed", "rule", "text"),
        "At `stage` it was decided whether a plugin goes on; `rule` decided, if a single one did.",
    ),
    KnownEvent(
        "quarantine.added",
        (_WARNING,),
        ("plugin", "path", "rule"),
        "A plugin took another process down and will not run in this one, by `rule`.",
    ),
    KnownEvent(
        "quarantine.suspected",
        (_INFO,),
        ("plugin", "path"),
        "A process ended while it loaded a plugin, which is tried anew before it is loaded again.",
    ),
    KnownEvent(
        "quarantine.released",
        (_INFO,),
        ("plugin", "path", "changes"),
        "The host changed as `changes` says, so a plugin is tried again.",
    ),
    KnownEvent(
        "plugin.differs",
        (_WARNING,),
        ("plugin", "path", "message"),
        "A plugin offers something else than what was remembered of it.",
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
        "device_count.failed",
        (_WARNING,),
        ("plugin", "code", "reason"),
        "A platform cannot say how many devices it has, so none of it is listed.",
    ),
    KnownEvent(
        "memory_growth.forced",
        (_WARNING,),
        (),
        "A platform forces memory growth, against what the user decided.",
    ),
    KnownEvent(
        "memory_limit.unknown",
        (_WARNING,),
        ("device",),
        "A device does not say how much memory it has, so no limit can be worked out.",
    ),
    KnownEvent(
        "environment.misread",
        (_WARNING,),
        ("variable", "value"),
        "An environment variable has a value that cannot be understood; it counts as not set.",
    ),
    KnownEvent(
        "hook.failed",
        (_WARNING,),
        ("what", "error"),
        "A hook of an installed package or of the application raised.",
    ),
    KnownEvent(
        "fsspec.protocol_kept",
        (_INFO,),
        ("scheme", "owner"),
        "fsspec serves a scheme by itself and was left alone.",
    ),
    KnownEvent(
        "storage.not_written",
        (_INFO,),
        ("path", "error"),
        "A file of this package could not be written; its content is worked out again.",
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
        "A plugin's file came while the service runs; what became of it is told before.",
    ),
    KnownEvent(
        "plugin.replaced",
        (_INFO,),
        ("plugin", "path"),
        "A new generation of a plugin took the place of the old one.",
    ),
    KnownEvent(
        "plugin.kept",
        (_WARNING,),
        ("plugin", "path", "reason"),
        "A plugin's file was replaced by one that does not load; the old generation goes on.",
    ),
    KnownEvent(
        "plugin.removed",
        (_INFO,),
        ("plugin", "path"),
        "A plugin's file is gone; it serves nothing new.",
    ),
    KnownEvent(
        "generation.closed",
        (_INFO,),
        ("plugin", "path", "errors"),
        "Nothing of a plugin's old generation is in use any more, and it was closed.",
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
        "A file is cut off or open for writing; it becomes a plugin when it is whole.",
    ),
    KnownEvent(
        "watch.polling",
        (_WARNING,),
        ("reason", "interval_s"),
        "The system tells of no changes, so directories are looked at every `interval_s` seconds.",
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
        "Plugins logged faster than the log was written; so many messages are missing here.",
    ),
)
