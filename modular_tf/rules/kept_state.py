"""Rules of what is kept between runs: who brought a process down, and what of it is believed."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

LOADING_SURVIVED = Rule(
    "LD-070",
    "A process survives loading a plugin.",
    "The plugin is tried again in a child process before it is loaded again. If it does no "
    "harm there, but the next process that loads it ends too, it is quarantined. Processes "
    "that were killed at that moment, and power cuts, look the same.",
    "Run `modular-tf quarantine retry NAME`, if the processes ended for another reason; else "
    "update the plugin, or tell its author.",
    "design, states",
)
CALLS_SURVIVED = Rule(
    "LD-130",
    "Neither a call into a plugin nor its threads, exit handlers and destructors end the process, "
    "or keep it from its end for longer than `close_timeout_s` of the configuration.",
    "It is reported on standard error and by `modular-tf why NAME`. The plugin is quarantined "
    "when the third process ends in its code: no trial would find that. Where write-protected "
    "tables of plugins were overwritten in the process, no plugin is blamed.",
    "Tell the plugin's author what was reported, and update the plugin; `modular-tf quarantine "
    "retry NAME` forgets it. `tell_ended_calls = false` in the configuration, or "
    "MODULAR_TF_TELL_ENDED_CALLS=0, switches the reports and records off.",
    "signal(7), exit(3), pthread_cancel(3)",
)
STORAGE_TRUSTED = Rule(
    "LD-071",
    "The files that this package keeps are regular files. They and their directory are owned "
    "by the user or by root, and no other user can write to them, nor to a directory or link "
    "on their path. For root, all of them are root's.",
    "Nothing is read or written there: a user who can write to it could mark a plugin as "
    "tried. Plugins are probed and tried again.",
    "Remove the file or the directory that the message names, or correct its owner and mode; "
    "or name another place: XDG_CACHE_HOME, XDG_STATE_HOME. As root in the home of another "
    "user, use that of root (`sudo -H`).",
    "XDG Base Directory Specification; the cache decides what runs untried",
    Severity.WARNING,
)
