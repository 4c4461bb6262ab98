"""`modular-tf doctor`: what works here, and what TensorFlow does with the plugins."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

import modular_tf
from modular_tf.cli.exit_codes import Exit
from modular_tf.cli.frame import command
from modular_tf.cli.process import terminate_as_interrupt
from modular_tf.cli.progress import ProgressLine
from modular_tf.cli.session import session

if TYPE_CHECKING:
    from modular_tf.cli.output import Printer
    from modular_tf.cli.words import GlobalOptions
    from modular_tf.tensorflow.doctor import Diagnosis, PluginRow


@command()
def doctor(options: GlobalOptions, printer: Printer) -> Exit:
    """Report what works here, and what TensorFlow does with the plugins that are installed.

    Child processes import TensorFlow and run plugins, which takes about 5 seconds, and as long
    again for each two files of `tensorflow-plugins` where the import fails. TensorFlow itself may
    take 2 minutes, a plugin `first_contact_timeout_s`. Values of variables are never shown, so the
    output can be pasted into an issue.

    With `--json`: `modular_tf`, `python`, `system` and `libc` are versions; `tensorflow` is null,
    or an object of `version`, `path` and `problem` (why its import fails without any plugin).
    `files` has an object for each file that `import tensorflow` opens: `path`, `origin` (the
    directory or variable that TensorFlow finds it by), `outcome` ("loads", "ignored", "fails": an
    exception, "aborts": the process ends, "hangs", "ends in use", or "unknown": it was not tried),
    `message`, `remedy`. `plugins` has `plugin`, `path`, `kinds`, `schemes`, `device_types`,
    `kernels`, `state` and `message` (here), `in_tensorflow` (an outcome of
    tf.experimental.register_filesystem_plugin, or null), `in_tensorflow_message`, `remedy`.
    `stores` has `scheme`, `plugin`, `variables` (whether each is set), `server`, `problem`.
    `schemes` has `scheme`, `plugin` (who serves it here, or ""), `in_tensorflow` (whether
    TensorFlow has it by itself), `message`, `remedy` (the commands that bring it), `wanted_by`
    (variables that are set for a scheme that nobody serves), `fails`. Each of these objects has
    `bad`: whether it fails. `lacking` lists the schemes that TensorFlow has by
    modular_tf.tensorflow alone. `well` is true where nothing is bad; the exit status is 0 then,
    else 1.
    """
    from modular_tf.tensorflow.doctor import diagnose  # noqa: PLC0415  (help needs none of it)

    progress = ProgressLine()

    def show_progress() -> None:
        progress.show(lambda spent_s: f"importing TensorFlow in child processes, {spent_s:.0f} s")

    with session(options, runs_plugins=False) as service, terminate_as_interrupt():
        try:
            diagnosis = diagnose(service, on_wait=show_progress)
        finally:
            progress.wipe()
    if printer.json:
        printer.json_object(**_as_object(diagnosis))
    else:
        _show(diagnosis, printer)
    return Exit.DONE if diagnosis.is_well else Exit.NO


def _as_object(diagnosis: Diagnosis) -> dict[str, object]:
    found = diagnosis.tensorflow
    return {
        "modular_tf": modular_tf.__version__,
        "python": platform.python_version(),
        "system": _system(),
        "libc": " ".join(platform.libc_ver()),
        "tensorflow": found
        and {"version": found.version, "path": found.folder, "problem": found.problem},
        "files": [{**asdict(row), "bad": row.is_bad} for row in diagnosis.files],
        "plugins": [{**asdict(row), "bad": row.is_bad} for row in diagnosis.plugins],
        "stores": [{**asdict(row), "bad": row.is_bad} for row in diagnosis.stores],
        "schemes": [{**asdict(row), "bad": row.is_bad} for row in diagnosis.schemes],
        "lacking": list(diagnosis.lacking),
        "workers": {name: why or "in force" for name, why in diagnosis.limits.items()},
        "well": diagnosis.is_well,
    }


def _system() -> str:
    return f"{platform.system()} {platform.release()} {platform.machine()}"


def _show(diagnosis: Diagnosis, printer: Printer) -> None:
    libc = " ".join(platform.libc_ver())
    printer.line(f"modular_tf {modular_tf.__version__}, Python {platform.python_version()}, {libc}")
    printer.line(_system())
    found = diagnosis.tensorflow
    if found is None:
        printer.line("TensorFlow: not installed for this Python")
    elif found.is_bad:
        _show_row(
            printer,
            "fails",
            f"import tensorflow, of {found.folder}",
            found.problem,
            "",
            is_bad=True,
        )
    else:
        printer.line(f"TensorFlow {found.version}: {found.folder}")
    _show_files(diagnosis, printer)
    _show_plugins(diagnosis, printer)
    _show_stores(diagnosis, printer)
    _show_schemes(diagnosis, printer)
    _show_summary(diagnosis, printer)


def _show_files(diagnosis: Diagnosis, printer: Printer) -> None:
    if diagnosis.files:
        _begin(printer, "What `import tensorflow` does with each file that it finds:")
    for row in diagnosis.files:
        _show_row(printer, row.outcome, row.path, row.message, row.remedy, is_bad=row.is_bad)


def _show_plugins(diagnosis: Diagnosis, printer: Printer) -> None:
    _begin(printer, "Plugins here:")
    for row in diagnosis.plugins:
        remedy = row.remedy if row.is_bad else ""
        words = f"{row.plugin}: {_offer(row)}"
        _show_row(printer, row.state, words, row.message, remedy, is_bad=row.is_bad)
    there = [row for row in diagnosis.plugins if row.in_tensorflow is not None]
    if there:
        _begin(printer, "The same in TensorFlow, by tf.experimental.register_filesystem_plugin:")
    for row in there:
        remedy = "" if row.is_bad else row.remedy
        _show_row(printer, str(row.in_tensorflow), row.plugin, row.in_tensorflow_message, remedy)


def _offer(row: PluginRow) -> str:
    names = [scheme or "plain paths" for scheme in row.schemes]
    names += [f"device {name}" for name in row.device_types]
    if row.kernels:
        names.append(f"{row.kernels} kernels")
    return ", ".join(names) or f"nothing of its {' and '.join(row.kinds)}"


def _show_stores(diagnosis: Diagnosis, printer: Printer) -> None:
    if diagnosis.stores:
        _begin(printer, "What they read from the environment (+ set, - not set):")
    for row in diagnosis.stores:
        words = [f"{'+' if is_set else '-'}{name}" for name, is_set in row.variables.items()]
        message = row.problem or (f"its server can be reached: {row.server}" if row.server else "")
        _show_row(printer, row.scheme, " ".join(words), message, "", is_bad=row.is_bad)


def _show_schemes(diagnosis: Diagnosis, printer: Printer) -> None:
    _begin(printer, "Schemes, and who serves them here:")
    for row in diagnosis.schemes:
        servers = [row.plugin, "TensorFlow itself" if row.in_tensorflow else ""]
        words = " and ".join(filter(None, servers)) or "nobody"
        _show_row(printer, row.scheme, words, row.message, row.remedy, is_bad=row.is_bad)


def _show_summary(diagnosis: Diagnosis, printer: Printer) -> None:
    _begin(printer, 'Worker processes (`isolation = "process"`) are restricted to:')
    for name, why in diagnosis.limits.items():
        printer.line(f"  {name}: not here, since {why}" if why else f"  {name}")
    printer.line()
    lacking = diagnosis.lacking
    if lacking:
        printer.line(f"TensorFlow lacks {', '.join(lacking)}.")
        printer.line("To have them there: import modular_tf.tensorflow.auto")
    if diagnosis.is_well:
        missing = ", ".join(row.scheme for row in diagnosis.schemes if row.is_missing)
        but = f", but nobody serves {missing}: see above for what does" if missing else ""
        printer.line(f"Nothing fails{but}.")
    else:
        printer.line("Something will fail: see the lines that begin with !")


def _begin(printer: Printer, title: str) -> None:
    printer.line()
    printer.line(title)


def _show_row(
    printer: Printer, word: str, subject: str, message: str, remedy: str, *, is_bad: bool = False
) -> None:
    mark = "!" if is_bad else " "
    printer.line(f"{mark} {word:<12} {subject}")
    for more in filter(None, (message, remedy and f"-> {remedy}")):
        for line in more.splitlines():
            printer.line(f"{'':15}{line}")
