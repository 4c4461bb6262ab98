"""`modular-tf new`: the project of a new plugin."""

from __future__ import annotations

import os
import shlex

import click

from modular_tf.check.project_template.project import KINDS, project_names, write_project
from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import message_of, report_error
from modular_tf.cli.process import Exit
from modular_tf.cli.values import DIR
from modular_tf.codec import encode
from modular_tf.errors import InvalidArgumentError


@command(calls_plugins=False)
@argument("kind", type=click.Choice(KINDS), help="what the plugin offers")
@argument("name", metavar="NAME", help="of the project: letters, digits, single - and _ between")
@click.option("--directory", type=DIR, help="where to write it; must not exist (default: NAME)")
@click.option(
    "--install-from",
    metavar="SOURCE",
    help="what its workflow installs as modular_tf: a URL of a wheel, git+https://..., or the "
    "path of a checkout in the project (default: this version, from an index)",
)
@click.option(
    "--scheme",
    metavar="SCHEME",
    help="of a filesystem, such as `store` for store://... (default: from NAME)",
)
@click.option(
    "--type", "device_type", metavar="TYPE",
    help="of a device, letters A to Z and _ (default: from NAME)",
)  # fmt: skip
def new(
    call: Invocation,
    kind: str,
    name: str,
    directory: str | None,
    install_from: str | None,
    scheme: str | None,
    device_type: str | None,
) -> Exit:
    """Write the project of a new plugin: one that builds, works, and passes `modular-tf check`.

    It is a filesystem in memory, or a device that computes nothing in the memory of the host: few
    files, with a test, a wheel and a workflow, to be changed into what you have in mind. Its
    README.md has the commands.
    """
    try:
        names = project_names(kind, name, scheme=scheme, device_type=device_type)
        folder = os.path.abspath(directory or names.project)
        files = write_project(names, folder, install_from)
    except InvalidArgumentError as error:
        report_error(str(error))
        return Exit.USAGE
    except OSError as error:
        report_error(message_of(error), folder)
        return Exit.NO
    lines = [os.path.join(folder, file) for file in files]
    if call.terminal:
        lines = [
            f"a {kind} plugin for {names.users_write}, {len(files)} files in {folder}",
            "",
            f"  cd {shlex.quote(os.path.relpath(folder))}",
            "  less README.md    # how to build, check, test, install and change it",
        ]
    values = {"directory": folder, "files": list(files), **encode(names)}
    call.show_object(values, lambda: call.lines(lines))
    return Exit.DONE
