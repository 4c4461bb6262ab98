"""Which schemes work here, who serves them, and what brings those that a user may miss."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.loading.storage_options import storage_options
from modular_tf.service.fsspec_clients import missed_schemes
from modular_tf.tensorflow.store_report import variables_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from modular_tf.service.service import PluginService


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
