"""Rules of plugins that run in a worker process of their own."""

from __future__ import annotations

from modular_tf.rules.violation import Rule

WORKER_RUNS = Rule(
    "LD-140",
    "The worker process of a plugin runs as long as it is used.",
    "The calls under way fail; files that were open there are lost. Other plugins go on, and the "
    "next call starts a new process.",
    "Read how it ended in the message, and report that to the plugin's author.",
    "design, isolation",
)
WORKER_ANSWERS = Rule(
    "LD-141",
    "A call in the worker process of a plugin returns within `call_timeout_s`.",
    "The process is ended, with all calls that are under way in it.",
    "Raise `call_timeout_s` where calls may take that long.",
    "design, isolation",
)
WORKER_REPLIES_FIT = Rule(
    "LD-142",
    "The worker process of a plugin answers in the form that the host expects.",
    "The reply is not believed: the call fails, and its channel is closed.",
    "Report it: the plugin has damaged its own process.",
    "design, isolation",
)
WORKER_HAS_FILE = Rule(
    "LD-143",
    "The worker process that opened a file or started a transaction still runs when that is used.",
    "It cannot be used any more. What was written to the file and not stored is lost; what was "
    "done in the transaction may be.",
    "Open the file again, or start another transaction.",
    "design, isolation",
)
WORKER_STARTS = Rule(
    "LD-144",
    "A worker process can be started for a plugin.",
    "The plugin is not loaded.",
    'The message says why; `isolation = "none"` loads the plugin in this process.',
    "design, isolation",
)
