"""What doctor reports of stores and schemes.

Which variables plugins read for their stores, and whether the servers that these name answer; which
schemes work here, who serves them, and what brings those that a user may miss.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import UnavailableError
from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
from modular_tf.loading.known_defects import workarounds_for
from modular_tf.loading.storage_options import storage_options, storage_options_of
from modular_tf.service.fsspec_clients import missed_schemes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_PATIENCE_S = 15.0  # one look-up of a name and one connection take 8 s at most


@dataclass(frozen=True, slots=True)
class StoreRow:
    """What a plugin reads from the environment for a scheme, and whether its server answers.

    Attributes:
        scheme: The scheme.
        plugin: Who serves it.
        variables: The variables that it reads, and whether each is set; never their values.
        server: Host and port of its server; "" where no variable names it.
        problem: Why the server accepts no connection, or which library is missing, and what to do;
            "" where nothing is known to be wrong.
    """

    scheme: str
    plugin: str
    variables: Mapping[str, bool]
    server: str = ""
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it has a problem, and a variable tells that it is wanted."""
        return bool(self.problem) and any(self.variables.values())


def report_stores(records: Iterable[PluginRecord]) -> tuple[StoreRow, ...]:
    """Return one row for each scheme whose plugin reads variables. It takes 15 seconds at most.

    Servers that a variable names are connected to, and nothing is sent to them.

    Args:
        records: What became of the plugins here.
    """
    stores = [_Store(record, scheme) for record in records for scheme in _schemes(record)]
    stores = [store for store in stores if store.variables]
    threads = [threading.Thread(target=store.look, daemon=True) for store in stores]
    for thread in threads:
        start_thread(thread)
    end = time.monotonic() + _PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return tuple(store.row() for store in stores)


def _schemes(record: PluginRecord) -> tuple[str, ...]:
    return record.schemes if record.path is not None else ()


class _Store:
    """A scheme of a plugin, whose server is looked at by a thread of its own."""

    def __init__(self, record: PluginRecord, scheme: str) -> None:
        workarounds = workarounds_for(record.path or "", scheme)
        self._scheme = scheme
        self._plugin = record.name
        copied = (name for names in workarounds.environment_copies.values() for name in names)
        endpoints = tuple(dict.fromkeys((*workarounds.endpoint_variables, *copied)))
        with_copies = replace(workarounds, endpoint_variables=endpoints)
        self._places = workarounds.needs_library
        self._check = EndpointCheck(with_copies, record.name)
        self._problem = f"no answer in {_PATIENCE_S:.0f} seconds"
        self.variables = variables_of(record.path or "", scheme)

    def look(self) -> None:
        """Find out whether the server accepts connections."""
        try:
            self._check.require("doctor", f"{self._scheme}://")
            self._problem = _missing_library(self._places)
        except UnavailableError as error:
            message = error.message.partition(": ")[2]
            self._problem = message.removesuffix(f" (plugin {self._plugin})")

    def row(self) -> StoreRow:
        """Return what is known now."""
        is_set = {name: bool(os.environ.get(name)) for name in self.variables}
        server = self._check.server_of(f"{self._scheme}://")
        named = "" if server == "the store" else server
        return StoreRow(self._scheme, self._plugin, is_set, named, self._problem)


def _missing_library(places: Iterable[str]) -> str:
    """Return which library the plugin will not find; the linker's own search is not foretold."""
    problems = []
    for place in places:
        variable = place[1:].partition("/")[0] if place.startswith("$") else ""
        path = os.path.expandvars(place)
        if variable and variable not in os.environ:
            problems.append(f"{variable} is not set: set it to the folder that has {place}")
        elif "/" in path and not os.path.exists(path):
            problems.append(f"{path} does not exist: correct {variable or 'its folder'}")
        elif "/" in path:
            return ""
    return "; ".join(problems)


def variables_of(library: str, scheme: str) -> tuple[str, ...]:
    """Return the variables that a plugin reads for a scheme, by the file name of its library."""
    workarounds = workarounds_for(library, scheme)
    names = (
        *workarounds.endpoint_variables,
        *workarounds.endpoint_switches,
        *workarounds.credential_variables,
        *storage_options_of(library, scheme).variables.values(),
        *workarounds.environment_copies,
        *(name for sources in workarounds.environment_copies.values() for name in sources),
        *workarounds.environment_removed,
        *filter(None, (workarounds.bounded_reads_variable,)),
        *(place[1:].partition("/")[0] for place in workarounds.needs_library if place[0] == "$"),
    )
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class AvailableScheme:
    """A scheme that is served here or in TensorFlow, or that a user may miss.

    Attributes:
        scheme: The scheme.
        plugin: Who serves it here; "" for nobody.
        in_tensorflow: Whether TensorFlow has it by itself.
        message: Why that one serves it, or what will fail; "" where neither is known.
        remedy: The commands that bring it, or what to do; "" where it is served.
        wanted_by: The variables that are set for it, where nobody serves it.
        fails: Whether what is to serve it is not here.
    """

    scheme: str
    plugin: str
    in_tensorflow: bool
    message: str = ""
    remedy: str = ""
    wanted_by: tuple[str, ...] = ()
    fails: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether nobody serves it."""
        return not (self.plugin or self.in_tensorflow)

    @property
    def is_bad(self) -> bool:
        """Whether it does not work here, and something shows that it is wanted."""
        return self.fails or (self.is_missing and bool(self.wanted_by))


def report_schemes(
    service: PluginService, in_tensorflow: Collection[str]
) -> tuple[AvailableScheme, ...]:
    """Return one row for each scheme, by their names; nothing is imported for it but fsspec.

    Args:
        service: It has loaded its plugins.
        in_tensorflow: The schemes that TensorFlow has by itself.
    """
    served, fallback = service.schemes(), service.fallback_schemes()
    rows = []
    for scheme in sorted({*served, *in_tensorflow, *missed_schemes()} - {""}):
        problem, remedy = service.foreseen_problem(scheme)
        row = AvailableScheme(
            scheme,
            plugin=served.get(scheme, ""),
            in_tensorflow=scheme in in_tensorflow,
            message=problem or fallback.get(scheme, ""),
            remedy=remedy,
            fails=bool(problem),
        )
        rows.append(_missing(service, scheme) if row.is_missing else row)
    return tuple(rows)


def _missing(service: PluginService, scheme: str) -> AvailableScheme:
    libraries = [row.library for row in storage_options() if scheme in row.schemes]
    names = {name for library in libraries for name in variables_of(library, scheme)}
    wanted_by = tuple(sorted(name for name in names if os.environ.get(name)))
    return AvailableScheme(
        scheme,
        plugin="",
        in_tensorflow=False,
        message=f"set for it: {', '.join(wanted_by)}" if wanted_by else "",
        remedy=service.next_step(scheme),
        wanted_by=wanted_by,
    )
