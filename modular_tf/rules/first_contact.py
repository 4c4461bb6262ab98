"""Rules of first contact: what a device plugin's code does to a process of its own."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "LD-060",
        "A plugin's code does not end the process that runs it.",
        "The plugin is quarantined: it ended the child process that tried it, and would have ended "
        "the application. TensorFlow's process ends.",
        "Update the plugin, or tell its author which call ended the process, and how; the message "
        "names both.",
        "design, states; the usage example of the RFC of 2020-09-08 dereferences NULL",
    ),
    Rule(
        "LD-061",
        "Each call into a plugin returns in time.",
        "The plugin is quarantined: the application would wait for ever.",
        "If the plugin needs longer, raise `first_contact_timeout_s` in the configuration; else "
        "tell its author which call hangs.",
        "design, states",
    ),
    Rule(
        "LD-062",
        "A plugin leaves the standard streams and other descriptors that it did not open alone.",
        "The plugin is quarantined: it would close files of the application.",
        "Tell the plugin's author to close only what the plugin has opened.",
        "close(2)",
    ),
    Rule(
        "LD-063",
        "A child process can be started to try a plugin in.",
        "The plugin is not loaded, since nobody knows what it would do to the application.",
        "Where this process is no Python command, name one with multiprocessing.set_executable(); "
        "or trust all plugins: MODULAR_TF_FIRST_CONTACT=never.",
        "host limit",
    ),
)
