"""Rules of a filesystem's configuration."""

from __future__ import annotations

from modular_tf.rules import Rule, Severity

_HEADER = "filesystem.h"

RULES: tuple[Rule, ...] = (
    Rule(
        "FS-309",
        "get_filesystem_configuration gives whole options: name, value, type, count, values.",
        "A program that lists the options crashes.",
        "Fill every field, and allocate each pointer by plugin_memory_allocate.",
        _HEADER,
    ),
    Rule(
        "FS-310",
        "set_filesystem_configuration takes what the plugin gave, and no options at all.",
        "A configuration that was saved cannot be restored.",
        "Accept every option that get_filesystem_configuration lists, with its own value.",
        _HEADER,
    ),
    Rule(
        "FS-311",
        "Single options are found by the names that the configuration lists, others are not.",
        "Options are listed that cannot be read or set.",
        "Answer a key that is not listed with NOT_FOUND, and every other one with the option.",
        _HEADER,
    ),
    Rule(
        "FS-312",
        "The plugin keeps copies of the options that it is given.",
        "The caller's memory is reused, and the option changes by itself or crashes.",
        "Copy names, values and buffers.",
        _HEADER,
    ),
    Rule(
        "FS-313",
        "get_filesystem_configuration_keys is NULL.",
        "No host calls it: its signature does not say who allocates the keys, nor how many.",
        "Leave it NULL; get_filesystem_configuration lists the names.",
        _HEADER,
        Severity.NOTE,
    ),
)
