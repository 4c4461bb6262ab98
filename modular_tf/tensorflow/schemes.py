"""What doctor reports of stores and schemes.

Which variables plugins read for their stores, and whether the servers that these name answer; which
schemes work here, who serves them, and what brings those that a user may miss.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import UnavailableError
from modular_tf.filesystem.workarounds import store_class
from modular_tf.filesystem.workarounds.endpoints import Endpoints
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.loading.published import storage_options, storage_options_of
from modular_tf.service.configured_filesystems import missed_schemes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService


@dataclass(frozen=True, slots=True)
class StoreRow:
    """What a plugin reads from the environment for a scheme, and whether its server answers.

    `variables` says of each whether it is set, and never its value; `server` is host and port, ""
    where no variable names it; `problem` says why it accepts no connection, or which library is
    missing, and what to do.
    """

    scheme: str
    plugin: str
    variables: Mapping[str, bool]
    server: str = ""
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it has a problem, and a variable shows that it is wanted."""
        return bool(self.problem) and any(self.variables.values())


def report_stores(records: Iterable[PluginRecord]) -> tuple[StoreRow, ...]:
    """Return one row for each scheme whose plugin reads variables, in 8 seconds at most.

    Servers that a variable names are connected to, and nothing is sent to them.
    """
    stores = [
        (record.name, record.path, scheme)
        for record in records
        if record.path is not None
        for scheme in record.schemes
        if variables_of(record.path, scheme)
    ]
    return tuple(results_at_once(lambda store: _store_row(*store), stores, len(stores) or 1))


def _store_row(plugin: str, library: str, scheme: str) -> StoreRow:
    known = store_class(library, scheme) or Store
    endpoints = Endpoints(partial(known.server, environment=os.environ), plugin)
    try:
        endpoints.require("doctor", f"{scheme}://")
        problem = known.missing_library()
    except UnavailableError as error:
        problem = error.message.partition(": ")[2].removesuffix(f" (plugin {plugin})")
    server = str(endpoints.server_of(f"{scheme}://") or "")
    is_set = {name: bool(os.environ.get(name)) for name in variables_of(library, scheme)}
    return StoreRow(scheme, plugin, is_set, server, problem)


def variables_of(library: str, scheme: str) -> tuple[str, ...]:
    """Return the variables that a plugin reads for a scheme, by the file name of its library."""
    known = store_class(library, scheme)
    options = storage_options_of(library, scheme).variables.values()
    return tuple(dict.fromkeys((*(known.variables if known else ()), *options)))


@dataclass(frozen=True, slots=True)
class AvailableScheme:
    """A scheme that is served here or in TensorFlow, or that a user may miss.

    `plugin` is "" where nobody serves it here; then `wanted_by` are the variables that are set for
    it, and `remedy` are the commands that bring it. `fails`: what is to serve it is not here.
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
    """Return one row for each scheme, by their names; nothing is imported for it but fsspec."""
    served, fallback = service.schemes(), service.fallback_schemes()
    rows = []
    for scheme in sorted({*served, *in_tensorflow, *missed_schemes()} - {""}):
        problem, remedy = service.foreseen_problem(scheme)
        message = problem or fallback.get(scheme, "")
        wanted_by: tuple[str, ...] = ()
        if scheme not in served and scheme not in in_tensorflow:
            libraries = [row.library for row in storage_options() if scheme in row.schemes]
            names = {name for library in libraries for name in variables_of(library, scheme)}
            wanted_by = tuple(sorted(name for name in names if os.environ.get(name)))
            message = f"set for it: {', '.join(wanted_by)}" if wanted_by else ""
            problem, remedy = "", service.next_step(scheme)
        rows.append(
            AvailableScheme(
                scheme,
                plugin=served.get(scheme, ""),
                in_tensorflow=scheme in in_tensorflow,
                message=message,
                remedy=remedy,
                wanted_by=wanted_by,
                fails=bool(problem),
            )
        )
    return tuple(rows)
