"""The types of values on a command line, some with candidates for shells that complete one.

A shell waits for candidates, and a plugin's call may take minutes where a store does not answer, so
another process finds the names that need plugins. A process that is loading a plugin must not be
ended, so it continues by itself; what it finds out of plugins is stored for the next time.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.shell_completion import CompletionItem

    from modular_tf.cli.frame import GlobalOptions
    from modular_tf.service.service import PluginService

    _TextType = click.ParamType[str]
else:
    _TextType = click.ParamType

_WAIT_S = 2.0  # that a person waits for names from a store or of plugins
_LONGEST_S = 30  # that a store is listed for in the background
_MOST_STATS = 64  # names of a store that are inspected, to mark directories with a slash
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_POWERS = " KMGT"
_RANGE = re.compile(r"(\d*)-(\d*)", re.ASCII)


# -- numbers --------------------------------------------------------------------------------------

COUNT = click.IntRange(min=0)


def seconds(text: str) -> float:
    """Return a time limit in seconds, at most what threads can wait."""
    return _positive(text, "number of seconds", threading.TIMEOUT_MAX)


def factor(text: str) -> float:
    """Return a finite number above 0."""
    return _positive(text, "number", sys.float_info.max)


def _positive(text: str, what: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise click.BadParameter(f"{text!r} is no {what} above 0")
    return value


def byte_count(text: str) -> int:
    """Return a number of bytes from text such as 100, 64K or 1.5GiB; units are powers of 1024."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 100, 64K or 1.5GiB")
    number, unit = match.groups()
    power = _POWERS.index(unit.upper() or " ")
    return int(number) * 1024**power if number.isdecimal() else int(float(number) * 1024**power)


def byte_range(text: str) -> tuple[int, int | None]:
    """Return the range of a text such as `0-99`, `100-` or `-50`, whose ends are both within it.

    It begins at the position of the first byte, a negative one counted from the end of the file,
    and ends at the position past the last byte, None for the end of the file.
    """
    match = _RANGE.fullmatch(text)
    first, last = match.groups() if match else ("", "")
    if first and last and int(first) <= int(last):
        return int(first), int(last) + 1
    if first and not last:
        return int(first), None
    if last and not first and int(last):
        return -int(last), None
    raise click.BadParameter(
        f"{text!r} is not a range: 0-99 is the first 100 bytes, 100- what follows them, -50 the"
        " last 50"
    )


# -- names, with candidates -----------------------------------------------------------------------


class CompletedType(_TextType):
    """The type of a value that stays as it is written, with candidates for shells.

    `name` is the value's name in the help; `candidates` returns what begins with a text, for a
    command with these global options.
    """

    def __init__(
        self, name: str, candidates: Callable[[GlobalOptions, str], Iterable[str]]
    ) -> None:
        self.name = name
        self._candidates = candidates

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the value's name in the help."""
        del param, ctx
        return self.name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the candidates; bytes and controls that a terminal does not show are left out."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  (for shells only)

        del param
        found = {one for one in self._candidates(ctx.obj, incomplete) if one.startswith(incomplete)}
        return [CompletionItem(one) for one in sorted(found) if one.isprintable()]


def _parted(prefix: str) -> tuple[str, Callable[[str], bool]]:
    """Return the directory of a path or URI that is being typed, and which names in it fit.

    A hidden one must be begun with its dot, as in shells.
    """
    slash = prefix.rfind("/") + 1
    folder, begun = prefix[:slash], prefix[slash:]
    return folder, lambda name: name.startswith(begun) if begun else not name.startswith(".")


def _files(_: GlobalOptions, prefix: str) -> list[str]:
    folder, fits = _parted(prefix)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            shown = [entry for entry in entries if fits(entry.name)]
            return [f"{folder}{one.name}{'/' if one.is_dir() else ''}" for one in shown]
    except OSError:
        return []


def _directories(options: GlobalOptions, prefix: str) -> list[str]:
    return [name for name in _files(options, prefix) if name.endswith("/")]


def _uris(options: GlobalOptions, prefix: str) -> list[str]:
    """Return URIs of files and directories, and schemes; local paths as well."""
    from modular_tf.filesystem.uri import scheme_of  # noqa: PLC0415  (for shells only)

    if scheme_of(prefix):
        return _found_in_time(options, lambda service: _in_store(service, prefix))
    files = _files(options, prefix)
    if "/" in prefix and not prefix.endswith(":/"):  # `ram:/` may become a scheme
        return files
    return files + _found_in_time(options, lambda service: _schemes(service, "://"))


def _in_store(service: PluginService, prefix: str) -> list[str]:
    import signal  # noqa: PLC0415  (for stores only)

    from modular_tf.concurrency.crew import Crew  # noqa: PLC0415
    from modular_tf.filesystem.uri import scheme_of  # noqa: PLC0415

    folder, fits = _parted(prefix)
    filesystem = service.filesystem_for(folder)
    filesystem.translate_name(folder)  # has the library mapped
    # Only now may the system end this process when a store does not answer: one that ends while a
    # plugin is being loaded puts that plugin under suspicion.
    signal.alarm(_LONGEST_S)
    names = filesystem.listing(folder, is_thorough=False).names
    found = [folder + name for name in names if fits(name)]
    inspected = found if len(found) <= _MOST_STATS else []
    crew = Crew(service.calls_at_once(scheme_of(prefix)))
    outcomes = crew.run(filesystem.is_directory, inspected)
    directories = {outcome.item for outcome in outcomes if outcome.result}
    return [f"{uri}/" if uri in directories else uri for uri in found]


def _plugin_names(service: PluginService) -> list[str]:
    return [record.name for record in service.plugins()]


def _schemes(service: PluginService, after: str = "") -> list[str]:
    return [f"{scheme}{after}" for scheme in service.schemes() if scheme]


def _plugins(options: GlobalOptions, prefix: str) -> list[str]:
    """Return the names of plugins, and files."""
    return _found_in_time(options, _plugin_names, load=False) + _files(options, prefix)


def _explained(options: GlobalOptions, prefix: str) -> list[str]:
    """Return the names that `why` explains."""
    names = _found_in_time(options, lambda service: _plugin_names(service) + _schemes(service))
    return names + (_files(options, prefix) if prefix else [])


def _operations(_: GlobalOptions, __: str) -> Iterable[str]:
    from modular_tf.kernel.standard_ops import standard_ops  # noqa: PLC0415  (for some verbs only)

    return standard_ops()


def _quarantined(_: GlobalOptions, __: str) -> list[str]:
    from modular_tf.service.storage.quarantine import QuarantineStore  # noqa: PLC0415  (likewise)

    return [entry.name for entry in QuarantineStore.of_process().entries()]


def _found_in_time(
    options: GlobalOptions, names: Callable[[PluginService], list[str]], *, load: bool = True
) -> list[str]:
    """Return the names that a service has, in a child process; none if it fails or takes long."""
    import select  # noqa: PLC0415  (for shells only)

    from modular_tf.cli.frame import Invocation  # noqa: PLC0415  (whose options have these types)

    reader, writer = os.pipe()
    if not os.fork():
        try:
            os.close(reader)
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):  # the shell waits until all who hold them have ended
                os.dup2(null, stream)
            with Invocation(options).session(load=load) as service:
                answer = b"".join(os.fsencode(name) + b"\0" for name in names(service))
            with os.fdopen(writer, "wb") as output:
                output.write(answer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as found:
        is_in_time = select.select([found], [], [], _WAIT_S)[0]
        return [os.fsdecode(name) for name in found.read().split(b"\0")[:-1]] if is_in_time else []


FILE = CompletedType("FILE", _files)
PATH = CompletedType("PATH", _files)
DIR = CompletedType("DIR", _directories)
FOLDER = CompletedType("FOLDER", _directories)
URI = CompletedType("URI", _uris)
SOURCE = CompletedType("SOURCE", _uris)
TARGET = CompletedType("TARGET", _uris)
PATTERN = CompletedType("PATTERN", _uris)
PLUGIN = CompletedType("PLUGIN", _plugins)
OPERATION = CompletedType("OP", _operations)
QUARANTINED = CompletedType("NAME", _quarantined)
EXPLAINED = CompletedType("NAME", _explained)
