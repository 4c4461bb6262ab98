"""`modular-tf lock`: the hashes of the plugins and hooks that may run."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from modular_tf.cli.frame import Invocation, command
from modular_tf.cli.output import counted, report_error
from modular_tf.cli.process import Exit, expect_exit
from modular_tf.cli.values import FILE
from modular_tf.discovery.file_identity import sha256_of_seen
from modular_tf.discovery.linking.system_libraries import environment_libraries
from modular_tf.discovery.privileges import is_privileged
from modular_tf.discovery.sources.search_paths import NO_HOME
from modular_tf.discovery.trust.lock import (
    LockedFile,
    LockedHook,
    LockedPlugin,
    LockFile,
    code_of_hook,
)
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.configuration import lock_path
from modular_tf.service.hooks import installed_hooks
from modular_tf.service.output_file import STANDARD_OUTPUT, refuse_special, write_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_ACCEPTED = ("found", "loaded", "shadowed")


@command()
@click.option(
    "--output",
    type=FILE,
    help="the lock file, instead of modular-tf.lock beside the configuration file; - is standard "
    "output",
)
@click.option(
    "--check",
    is_flag=True,
    help="write nothing; report what differs from the lock file, with exit code 1",
)
@click.option(
    "--load", is_flag=True,
    help="load the plugins, to lock the libraries that their code opens, and to note schemes and "
    "device types for readers of the file",
)  # fmt: skip
def lock(call: Invocation, *, output: str | None, check: bool, load: bool) -> Exit:
    """Write the lock file: the hashes of all plugins that are accepted now, and of installed hooks.

    With --frozen, MODULAR_TF_FROZEN=1 or `frozen` under [trust] in the configuration, no other
    plugin is loaded. The file names no directories, so one that is made in an image holds in its
    containers.
    """
    if output == STANDARD_OUTPUT and (check or call.options.json):
        report_error(f"--output {output} writes the lock file alone: no --check, no --json")
        return Exit.USAGE
    with call.session(load=load, adapted=_not_frozen) as service:
        path = output or lock_path(service.config)
        if path is not None and not check:
            refuse_special(path)  # before the plugins are loaded, which may take long
        records = [
            record
            for record in service.plugins()
            if record.path is not None
            and record.state.value in _ACCEPTED
            and service.config.why_disabled(record.name) is None
        ]
        now = _lock_of(service, records, with_opened=load)
    if path is None:
        why = "this process has rights that its user lacks" if is_privileged() else NO_HOME
        report_error(f"name the lock file with --output: {why}")
        return Exit.USAGE
    if check:
        return _check(os.path.abspath(path), now, call, with_opened=load)
    if not now.plugins:
        report_error("no plugin is accepted, so there is nothing to lock; see `modular-tf list`")
        return Exit.NOTHING
    write_output(path, now.text().encode("utf-8"))
    if path == STANDARD_OUTPUT:
        return Exit.DONE
    path = os.path.abspath(path)

    def show() -> None:
        files = [(plugin.name, plugin.library) for plugin in now.plugins.values()]
        files += [(hook.name, hook.code) for hook in now.hooks]
        rows = [(name, file.file, file.sha256) for name, file in files]
        call.table(("name", "file", "sha256"), rows)
        call.line(f"{counted(len(now.plugins), 'plugin')} in {path}")

    call.show_object({"lock": path, **now.as_dict()}, show)
    return Exit.DONE


def _not_frozen(config: Config) -> Config:
    return replace(config, trust=replace(config.trust, frozen=False))


def _lock_of(service: PluginService, records: list[PluginRecord], *, with_opened: bool) -> LockFile:
    """Return what is to be locked; files that code opens only if each plugin was loaded.

    Else they are known of some plugins and not of others, as the scan cache happens to hold.
    """
    brought = environment_libraries()
    plugins = []
    for record in records:
        plugin = service.entry(record.name).plugin
        library, *others = plugin.checked
        known = {*plugin.facts.companions, *brought}
        companions = [each for each in others if with_opened or each.path in known]
        plugins.append(
            LockedPlugin(
                name=record.name,
                library=_locked(library),
                distribution=plugin.candidate.brought_by,
                schemes=record.schemes,
                device_types=record.device_types,
                companions=tuple(map(_locked, companions)),
            )
        )
    return LockFile.of(plugins, _hooks())


def _hooks() -> Iterator[LockedHook]:
    """Yield the hooks that installed packages bring; those without code would not run either."""
    for name, value in installed_hooks(sys.path):
        try:
            code = code_of_hook(value)
        except OSError as error:
            raise_shortage(error)
        else:
            yield LockedHook(name, value, code)


def _locked(judged: SeenFile) -> LockedFile:
    """Return the hash of a file that was judged, not of one that has replaced it since."""
    size = 0 if judged.identity is None else judged.identity.size
    return LockedFile(os.path.basename(judged.path), sha256_of_seen(judged), size)


# -- comparing -----------------------------------------------------------------------------------


def _check(path: str, now: LockFile, call: Invocation, *, with_opened: bool) -> Exit:
    try:
        with open(path, "rb") as stream:
            locked = LockFile.parse(stream.read())
    except (OSError, ValueError) as error:
        report_error(f"the lock file cannot be read: {error}", path)
        return Exit.NO
    differences = _differences(locked, now, with_opened=with_opened)
    found = [{"plugin": plugin, "what": what} for plugin, what in differences]
    code = Exit.NO if found else Exit.DONE
    expect_exit(code)
    call.show_each("differences", found, lambda it: [f"{it['plugin']}: {it['what']}"], lock=path)
    return code


def _differences(
    locked: LockFile, now: LockFile, *, with_opened: bool
) -> Iterator[tuple[str, str]]:
    """Yield the name of a plugin or hook, and what differs, for each difference."""
    names = {plugin.name: plugin for plugin in locked.plugins.values()}
    for sha256, plugin in now.plugins.items():
        if (known := locked.plugins.get(sha256)) is not None:
            for what in _companion_differences(known, plugin, with_opened=with_opened):
                yield plugin.name, what
        elif plugin.name in names:
            was = names[plugin.name].library.sha256
            yield plugin.name, f"its sha256 is {sha256}, locked was {was}"
        else:
            yield plugin.name, f"new: {plugin.library.file}, sha256 {sha256}"
    present = {plugin.name for plugin in now.plugins.values()}
    for sha256, plugin in locked.plugins.items():
        if sha256 not in now.plugins and plugin.name not in present:
            yield plugin.name, f"gone: {plugin.library.file}, sha256 {sha256}"
    known_code = {(hook.value, hook.code.sha256) for hook in locked.hooks}
    for hook in now.hooks:
        if (hook.value, hook.code.sha256) not in known_code:
            yield hook.name, f"new code of a hook: {hook.value}, {hook.code.sha256}"
    for hook in locked.hooks:
        if hook.value not in {it.value for it in now.hooks}:
            yield hook.name, f"hook gone: {hook.value}"


def _companion_differences(
    locked: LockedPlugin, now: LockedPlugin, *, with_opened: bool
) -> Iterator[str]:
    known = {entry.sha256 for entry in locked.companions}
    found = {entry.sha256 for entry in now.companions}
    # Without loading, what is locked and not found may be what code opens.
    names = {entry.file for entry in (locked if with_opened else now).companions}
    for entry in now.companions:
        if entry.sha256 not in known:
            yield f"new companion: {entry.file}, sha256 {entry.sha256}"
    for entry in locked.companions:
        if entry.sha256 not in found and entry.file in names:
            yield f"companion gone: {entry.file}, sha256 {entry.sha256}"
