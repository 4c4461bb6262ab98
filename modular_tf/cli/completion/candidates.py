"""What may stand in the place of an argument: URIs, files, plugins, operations."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.cli.completion.in_time import names_in_time
from modular_tf.filesystem.scheme import scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from modular_tf.service.service import PluginService

    Candidates = Callable[[str, Namespace], Iterable[str]]
    """Candidates that begin with some text, for a command with these options."""

_WAIT_S = 2.0  # that a person waits for names from a store or of plugins
_LONGEST_S = 30  # that a store is listed for in the background, when nobody waits any more
_MOST_LOOKS = 64  # names of a store that are looked at, to tell directories by a slash


_found: dict[tuple[Candidates, str], list[str]] = {}  # by this process, which answers once


class _Completer(NamedTuple):
    """A function as argcomplete calls it."""

    candidates: Candidates

    def __call__(self, prefix: str, parsed_args: Namespace, **_: object) -> list[str]:
        key = self.candidates, prefix
        if key not in _found:  # several arguments may be of one kind, as the two of a copy
            _found[key] = list(self.candidates(prefix, parsed_args))
        found = _found[key]
        # What has bytes or controls that a terminal does not show cannot be completed by typing.
        return sorted(one for one in found if one.startswith(prefix) and one.isprintable())


def completer_of(verb: str, dest: str, metavar: object) -> _Completer | None:
    """Return the completer of an argument, None if its values are the user's own.

    Args:
        verb: The name of the verb; empty for a global option.
        dest: What the argument is called in the options.
        metavar: What its value is called in the help.
    """
    found = _BY_VERB.get((verb, dest)) or _BY_DEST.get(dest) or _BY_METAVAR.get(str(metavar))
    return found and _Completer(found)


def _files(prefix: str, _: Namespace) -> list[str]:
    """Return files and directories of this machine."""
    folder, begun = _parted(prefix)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            shown = [entry for entry in entries if _is_meant(entry.name, begun)]
            return [f"{folder}{one.name}{'/' if one.is_dir() else ''}" for one in shown]
    except OSError:
        return []


def _parted(prefix: str) -> tuple[str, str]:
    """Return the directory of a path or URI that is being typed, and the begin of a name in it."""
    slash = prefix.rfind("/") + 1
    return prefix[:slash], prefix[slash:]


def _is_meant(name: str, begun: str) -> bool:
    """Return whether a name begins like this; a hidden one must, as in shells, with its dot."""
    return name.startswith(begun) and (begun != "" or not name.startswith("."))


def _directories(prefix: str, options: Namespace) -> list[str]:
    return [name for name in _files(prefix, options) if name.endswith("/")]


def _uris(prefix: str, options: Namespace) -> list[str]:
    """Return URIs of files and directories, and schemes; local paths as well."""
    if scheme_of(prefix):
        return names_in_time(lambda: _in_store(prefix, options), _WAIT_S)
    found = _files(prefix, options)
    if "/" not in prefix or prefix.endswith(":/"):
        found += names_in_time(lambda: [f"{s}://" for s in _schemes(options) if s], _WAIT_S)
    return found


def _in_store(prefix: str, options: Namespace) -> list[str]:
    from modular_tf.concurrency.crew import Crew  # noqa: PLC0415  (for stores only)

    folder, begun = _parted(prefix)
    with _service(options) as service:
        filesystem = service.filesystem_for(folder)
        filesystem.translate_name(folder)  # has the library mapped
        _end_later()
        names = filesystem.listing(folder, is_thorough=False).names
        found = [folder + name for name in names if _is_meant(name, begun)]
        asked = found if len(found) <= _MOST_LOOKS else []
        outcomes = Crew(service.calls_at_once(scheme_of(prefix))).run(
            filesystem.is_directory, asked
        )
        directories = {outcome.item for outcome in outcomes if outcome.result}
        return [f"{uri}/" if uri in directories else uri for uri in found]


def _end_later() -> None:
    """Let the system end this process when a store does not answer.

    A process may only end like this when no plugin is being loaded in it: the next one would have
    that plugin under suspicion.
    """
    import signal  # noqa: PLC0415  (for stores only)

    signal.alarm(_LONGEST_S)


def _schemes(options: Namespace) -> list[str]:
    with _service(options) as service:
        return list(service.schemes())


def _plugins(prefix: str, options: Namespace) -> list[str]:
    """Return the names of plugins, and files."""

    def names() -> list[str]:
        with _service(options, load=False) as service:
            return [record.name for record in service.plugins()]

    return [*names_in_time(names, _WAIT_S), *_files(prefix, options)]


def _names(prefix: str, options: Namespace) -> list[str]:
    """Return what `why` explains."""

    def names() -> list[str]:
        with _service(options) as service:
            return [
                *(record.name for record in service.plugins()),
                *filter(None, service.schemes()),
            ]

    return [*names_in_time(names, _WAIT_S), *(_files(prefix, options) if prefix else [])]


def _operations(_: str, __: Namespace) -> Iterable[str]:
    from modular_tf.kernel.standard_ops import standard_ops  # noqa: PLC0415  (for some verbs only)

    return standard_ops()


def _quarantined(_: str, __: Namespace) -> list[str]:
    from modular_tf.service.kept.quarantine import QuarantineStore  # noqa: PLC0415  (some verbs)

    return [entry.name for entry in QuarantineStore.of_process().entries()]


def _service(options: Namespace, *, load: bool = True) -> AbstractContextManager[PluginService]:
    """Return a service with the global options that the command line has so far."""
    from modular_tf.cli.session import session  # noqa: PLC0415  (loads the native core)

    given = {"plugin": [], "plugin_dir": [], "bundled": True, "frozen": False, **vars(options)}
    return session(Namespace(**given), load=load)


_BY_VERB: dict[tuple[str, str], Candidates] = {
    ("why", "name"): _names,
    ("ops", "name"): _operations,
    ("run", "op"): _operations,
    ("kernels", "op"): _operations,
    ("kernels", "of_plugin"): _plugins,
    ("inspect", "plugin_wanted"): _plugins,
    ("check", "targets"): _plugins,
    ("retry", "name"): _quarantined,
    ("clear", "name"): _quarantined,
}
_BY_DEST: dict[str, Candidates] = {
    "uris": _uris, "patterns": _uris, "source": _uris, "target": _uris,
}  # fmt: skip
_BY_METAVAR: dict[str, Candidates] = {
    "URI": _uris, "FILE": _files, "PATH": _files, "DIR": _directories, "FOLDER": _directories,
}  # fmt: skip
