"""The verbs of the command line and their modules.

A module is imported only when its verb is used, so that a short command starts fast. It has
`add_arguments(parser)` and `execute(options, printer)`, which returns the exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verb(NamedTuple):
    """A verb, or a family of verbs (`fs ls`, `fs cat`).

    Attributes:
        help: One line for the list of commands.
        module: Where it is done; empty for a family.
        family: The verbs of a family by name.
    """

    help: str
    module: str = ""
    family: Mapping[str, Verb] | None = None


_FS = {
    "ls": Verb("list directories", "modular_tf.cli.fs.ls"),
    "cat": Verb("write files to standard output", "modular_tf.cli.fs.cat"),
    "stat": Verb("show size, kind and modification time", "modular_tf.cli.fs.stat"),
    "cp": Verb("copy, also between schemes and local paths", "modular_tf.cli.fs.cp"),
    "mv": Verb("move or rename", "modular_tf.cli.fs.mv"),
    "rm": Verb("remove", "modular_tf.cli.fs.rm"),
    "mkdir": Verb("make directories", "modular_tf.cli.fs.mkdir"),
    "glob": Verb("list what matches patterns", "modular_tf.cli.fs.glob"),
    "find": Verb("list whole trees", "modular_tf.cli.fs.find"),
}

_QUARANTINE = {
    "list": Verb("list the quarantined plugins", "modular_tf.cli.quarantine.listing"),
    "retry": Verb(
        "release plugins from quarantine and try them again", "modular_tf.cli.quarantine.retry"
    ),
    "clear": Verb("release plugins from quarantine", "modular_tf.cli.quarantine.clear"),
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
    "check": Verb("check whether a plugin conforms to its interface", "modular_tf.cli.check"),
    "new": Verb("write the project of a new plugin", "modular_tf.cli.new"),
    "headers": Verb("print the path of the C headers for plugins", "modular_tf.cli.headers"),
    "why": Verb("explain why a name is served or not", "modular_tf.cli.why"),
    "watch": Verb("follow plugin files that come, change and go", "modular_tf.cli.watch"),
    "lock": Verb("write which plugins may load when frozen, or check", "modular_tf.cli.lock"),
    "quarantine": Verb("work with quarantined plugins", family=_QUARANTINE),
    "fs": Verb("work with files of any scheme", family=_FS),
}
