"""`modular-tf doctor`: what works here, and what TensorFlow does with the plugins."""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import modular_tf
from modular_tf.cli.frame import Invocation, command
from modular_tf.cli.process import Exit, expect_exit, terminate_as_interrupt
from modular_tf.cli.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.service.configuration import Config
    from modular_tf.tensorflow.doctor import Diagnosis, PluginRow


@command()
def doctor(call: Invocation) -> Exit:
    """Report what works here, and what TensorFlow does with the plugins that are installed.

    Child processes import TensorFlow and run plugins, which takes about 5 seconds, and as long
    again for each two files of `tensorflow-plugins` where the import fails. TensorFlow itself may
    take 2 minutes, a plugin `first_contact_timeout_s`. Values of variables are never shown, so the
    output can be pasted into an issue.

    With `--json`: `modular_tf`, `python`, `system` and `libc` are versions; `tensorflow` is null,
    or an object of `version`, `path` and `problem` (why its import fails without any plugin).
    `files` has an object for each file that `import tensorflow` opens: `path`, `origin` (the
    directory or variable that TensorFlow finds it by), `outcome` ("loads", "ignored", "fails": an
    exception, "aborts": the process ends, "hangs", "ends in use": counting devices ends the
    process, or "unknown": it was not tried), `message`, `remedy`. `plugins` has `plugin`, `path`,
    `kinds`, `schemes`, `device_types`, `kernels`, `state` and `message` (here), `in_tensorflow` (an
    outcome of tf.experimental.register_filesystem_plugin, or null), `in_tensorflow_message`,
    `remedy`. `stores` has `scheme`, `plugin`, `variables` (whether each is set), `server`,
    `problem`. `schemes` has `scheme`, `plugin` (who serves it here, or ""), `in_tensorflow`
    (whether TensorFlow has it by itself), `message`, `remedy` (the commands that bring it),
    `wanted_by` (variables that are set for a scheme that nobody serves), `fails`. Each of these
    objects has `bad`: whether it fails. `lacking` lists the schemes that TensorFlow has by
    modular_tf.tensorflow alone. `workers` has what worker processes are restricted to, each with
    "in force" or why it is not. `well` is true where nothing is bad; the exit status is 0 then,
    else 1.
    """
    from modular_tf.tensorflow.doctor import diagnose  # noqa: PLC0415  (help needs none of it)

    def show_progress() -> None:
        progress.show(lambda spent_s: f"importing TensorFlow in child processes, {spent_s:.0f} s")

    with (
        call.session(adapted=_tried_in_children) as service,
        terminate_as_interrupt(),
        ProgressLine() as progress,
    ):
        diagnosis = diagnose(service, on_wait=show_progress)
    values = _as_object(diagnosis)
    code = Exit.DONE if diagnosis.is_well else Exit.NO
    expect_exit(code)
    call.show_object(values, lambda: _show(diagnosis, values, call))
    return code


def _tried_in_children(config: Config) -> Config:
    """Return a configuration by which no plugin is mapped in this process."""
    tries = "new" if config.first_contact == "never" else config.first_contact
    return replace(config, first_contact=tries, load="lazy")


def _as_object(diagnosis: Diagnosis) -> dict[str, object]:
    rows = {
        name: [{**asdict(row), "bad": row.is_bad} for row in getattr(diagnosis, name)]
        for name in ("files", "plugins", "stores", "schemes")
    }
    return {
        "modular_tf": modular_tf.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "tensorflow": diagnosis.tensorflow and asdict(diagnosis.tensorflow),
        **rows,
        "lacking": list(diagnosis.lacking),
        "workers": {name: why or "in force" for name, why in diagnosis.limits.items()},
        "well": diagnosis.is_well,
    }


def _show(diagnosis: Diagnosis, values: Mapping[str, object], call: Invocation) -> None:
    def begin(title: str) -> None:
        call.lines(["", title])

    def show(
        word: str, subject: str, message: str, remedy: str = "", *, is_bad: bool = False
    ) -> None:
        call.line(f"{'!' if is_bad else ' '} {word:<12} {subject}")
        for more in filter(None, (message, remedy and f"-> {remedy}")):
            call.lines(f"{'':15}{line}" for line in more.splitlines())

    call.line("modular_tf {modular_tf}, Python {python}, {libc}".format_map(values))
    call.line(str(values["system"]))
    found = diagnosis.tensorflow
    if found is None:
        call.line("TensorFlow: not installed for this Python")
    elif found.problem:
        show("fails", f"import tensorflow, of {found.path}", found.problem, is_bad=True)
    else:
        call.line(f"TensorFlow {found.version}: {found.path}")
    if diagnosis.files:
        begin("What `import tensorflow` does with each file that it finds:")
    for file in diagnosis.files:
        show(file.outcome, file.path, file.message, file.remedy, is_bad=file.is_bad)
    begin("Plugins here:")
    for plugin in diagnosis.plugins:
        subject = f"{plugin.plugin}: {_offer(plugin)}"
        remedy = plugin.remedy if plugin.is_bad else ""
        show(plugin.state, subject, plugin.message, remedy, is_bad=plugin.is_bad)
    tried = [plugin for plugin in diagnosis.plugins if plugin.in_tensorflow is not None]
    if tried:
        begin("The same in TensorFlow, by tf.experimental.register_filesystem_plugin:")
    for plugin in tried:
        remedy = "" if plugin.is_bad else plugin.remedy
        show(str(plugin.in_tensorflow), plugin.plugin, plugin.in_tensorflow_message, remedy)
    if diagnosis.stores:
        begin("What they read from the environment (+ set, - not set):")
    for store in diagnosis.stores:
        names = [f"{'+' if is_set else '-'}{name}" for name, is_set in store.variables.items()]
        reached = f"its server can be reached: {store.server}" if store.server else ""
        show(store.scheme, " ".join(names), store.problem or reached, is_bad=store.is_bad)
    begin("Schemes, and who serves them here:")
    for row in diagnosis.schemes:
        servers = [row.plugin, "TensorFlow itself" if row.in_tensorflow else ""]
        subject = " and ".join(filter(None, servers)) or "nobody"
        show(row.scheme, subject, row.message, row.remedy, is_bad=row.is_bad)
    begin('Worker processes (`isolation = "process"`) are restricted to:')
    for name, why in diagnosis.limits.items():
        call.line(f"  {name}: not here, since {why}" if why else f"  {name}")
    call.line()
    if lacking := diagnosis.lacking:
        call.line(f"TensorFlow lacks {', '.join(lacking)}.")
        call.line("To have them there: import modular_tf.tensorflow.auto")
    if diagnosis.is_well:
        missing = ", ".join(row.scheme for row in diagnosis.schemes if row.is_missing)
        but = f", but nobody serves {missing}: see above for what does" if missing else ""
        call.line(f"Nothing fails{but}.")
    else:
        call.line("Something will fail: see the lines that begin with !")


def _offer(row: PluginRow) -> str:
    names = [scheme or "plain paths" for scheme in row.schemes]
    names += [f"device {name}" for name in row.device_types]
    if row.kernels:
        names.append(f"{row.kernels} kernels")
    return ", ".join(names) or f"nothing of its {' and '.join(row.kinds)}"
