"""A plugin to open, as it is sent to the process that opens it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NamedTuple

from modular_tf.discovery.file_identity import SeenFile

WITNESSED = ".witnessed"
"""The suffix that `Task.witness` adds to the name of a mark."""


class Task(NamedTuple):
    """One plugin to open (`modular_tf.opening`).

    Attributes:
        plugin: Its name for users.
        file: Its library.
        companions: Files of libraries that it brings along (`LoadFacts.companions`).
        absent: Functions that nobody has (`LoadFacts.absent`).
        kinds: What to open of it: `filesystem`, `device`, `kernel`, as `discovery.kinds.Kind` has
            them.
        checked: The files as they were when they were checked (`TrustVerdict.checked`); only these
            are mapped. None where they were not checked.
        mark: The file that tells later processes that this plugin is under trial, "" for none.
    """

    plugin: str
    file: str
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("device",)
    checked: tuple[SeenFile, ...] | None = None
    mark: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return self._asdict()

    def witness(self) -> None:
        """Rename the mark, since the plugin did not end the application: its watcher still runs.

        A plugin that kills all processes of its user kills the watcher too.
        """
        if self.mark:
            with suppress(OSError):  # the application goes on, and has removed it
                os.rename(self.mark, f"{self.mark}{WITNESSED}")

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Task:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        lists = {key: tuple(value[key]) for key in ("companions", "absent", "kinds")}
        checked = value["checked"]
        return cls(
            plugin=value["plugin"],
            file=value["file"],
            mark=value["mark"],
            **lists,
            checked=None if checked is None else tuple(map(SeenFile.from_row, checked)),
        )
