"""The verbs of the command line and their modules.

A module is imported only when its verb is used, so that a short command starts fast. It has
`add_arguments(parser)` and `execute(options, printer)`, which returns the exit code; of a module of
several verbs, a `FileVerb` has them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verb(NamedTuple):
    """A verb, or a family of verbs (`fs ls`, `fs cat`).

    Attributes:
        help: One line for the list of commands.
        module: The module, and past a colon the verb in it; empty for a family.
        family: The verbs of a family by name.
        calls_plugins: Whether it may call plugins in its own process.
    """

    help: str
    module: str = ""
    family: Mapping[str, Verb] | None = None
    calls_plugins: bool = True


def module_of(verb: Verb) -> Any:
    """Return what has `add_arguments`, `execute` and the description of a verb."""
    module, _, name = verb.module.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


_FS = {
    "ls": Verb("list directories", "modular_tf.cli.fs.listing:ls"),
    "find": Verb("list whole trees", "modular_tf.cli.fs.listing:find"),
    "glob": Verb("list what matches patterns", "modular_tf.cli.fs.listing:glob"),
    "du": Verb("show how much directories hold", "modular_tf.cli.fs.listing:du"),
    "stat": Verb("show size, kind and modification time", "modular_tf.cli.fs.listing:stat"),
    "cat": Verb("write files to standard output", "modular_tf.cli.fs.reading:cat"),
    "head": Verb("write the first lines of files", "modular_tf.cli.fs.reading:head"),
    "tail": Verb("write the last lines of files", "modular_tf.cli.fs.reading:tail"),
    "cp": Verb("copy, also between schemes and local paths", "modular_tf.cli.fs.transfer:cp"),
    "mv": Verb("move or rename", "modular_tf.cli.fs.transfer:mv"),
    "rm": Verb("remove", "modular_tf.cli.fs.transfer:rm"),
    "sync": Verb("make a directory like another one", "modular_tf.cli.fs.transfer:sync"),
    "mkdir": Verb("make directories", "modular_tf.cli.fs.transfer:mkdir"),
}

_QUARANTINE = {
    "list": Verb(
        "list the quarantined plugins", "modular_tf.cli.quarantine.listing", calls_plugins=False
    ),
    "retry": Verb(
        "release plugins from quarantine and try them again", "modular_tf.cli.quarantine.retry"
    ),
    "clear": Verb(
        "release plugins from quarantine", "modular_tf.cli.quarantine.clear", calls_plugins=False
    ),
}

VERBS: Mapping[str, Verb] = {
    "list": Verb("list plugins, and why one is not loaded", "modular_tf.cli.list_plugins"),
    "devices": Verb("list devices", "modular_tf.cli.devices"),
    "schemes": Verb("list filesystem schemes and their plugins", "modular_tf.cli.schemes"),
    "kernels": Verb("list the kernels of plugins", "modular_tf.cli.kernels.listing"),
    "ops": Verb("list operations, or show one", "modular_tf.cli.kernels.ops"),
    "run": Verb("compute an operation on files of numpy", "modular_tf.cli.kernels.run_op"),
    "paths": Verb("list where plugins are searched for", "modular_tf.cli.paths"),
    "inspect": Verb("show what is in a plugin", "modular_tf.cli.inspect_plugin"),
    "check": Verb(
        "check whether a plugin conforms to its interface",
        "modular_tf.cli.check",
        calls_plugins=False,
    ),
    "new": Verb("write the project of a new plugin", "modular_tf.cli.new", calls_plugins=False),
    "headers": Verb(
        "print the path of the C headers for plugins", "modular_tf.cli.headers", calls_plugins=False
    ),
    "fetch": Verb("get the plugins of a published package", "modular_tf.cli.fetch"),
    "why": Verb("explain why a name is served or not", "modular_tf.cli.why"),
    "doctor": Verb(
        "report what works here, and what TensorFlow will do with it", "modular_tf.cli.doctor"
    ),
    "workers": Verb(
        "list the worker processes of the running applications", "modular_tf.cli.workers"
    ),
    "watch": Verb("follow plugin files that come, change and go", "modular_tf.cli.watch"),
    "lock": Verb("write which plugins may load when frozen, or check", "modular_tf.cli.lock"),
    "quarantine": Verb("work with quarantined plugins", family=_QUARANTINE),
    "completion": Verb(
        "print what completes command lines in a shell",
        "modular_tf.cli.completion.script",
        calls_plugins=False,
    ),
    "fs": Verb("work with files of any scheme", family=_FS),
}
