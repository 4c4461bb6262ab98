"""Rules of what is kept between runs: who brought a process down, and what of it is believed."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

LOADING_SURVIVED = Rule(
    "LD-070",
    "A process survives loading a plugin.",
    "The plugin is tried anew in a child process before it is loaded again. If it does no harm "
    "there, and the next process ends while it loads it as well, it is quarantined. Processes "
    "that somebody killed at that moment, and power cuts, look the same.",
    "Run `modular-tf quarantine retry NAME`, if the processes ended for another reason; else "
    "update the plugin, or tell its author.",
    "design, states",
)
CALLS_SURVIVED = Rule(
    "LD-130",
    "A call into a plugin does not end the process.",
    "It is told on standard error and by `modular-tf why NAME`. The plugin is quarantined when "
    "the third process ends in a call of it: no trial would find that.",
    "Tell the plugin's author which call it was, and update the plugin; `modular-tf quarantine "
    "retry NAME` forgets it. `tell_ended_calls = false` in the configuration, or "
    "MODULAR_TF_TELL_ENDED_CALLS=0, has nothing of it told or kept.",
    "signal(7), exit(3)",
)
STORAGE_TRUSTED = Rule(
    "LD-071",
    "What this package keeps on disk is a regular file, it and its directory are owned by the "
    "user or by root, and nobody else can write to them, nor to a directory or link on the way "
    "that could lead elsewhere then. For root, all of that is root's.",
    "Nothing is read there, and nothing kept: whoever can write it could say that a plugin was "
    "tried. Plugins are probed and tried anew.",
    "Remove the file or the directory that the message names, or correct its owner and mode; "
    "or name another place: XDG_CACHE_HOME, XDG_STATE_HOME. As root in the home of another "
    "user, use that of root (`sudo -H`).",
    "XDG Base Directory Specification; the cache decides what runs untried",
    Severity.WARNING,
)
