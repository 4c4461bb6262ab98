"""Runs in the child: opens a plugin as the application does, to learn what it offers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError
from modular_tf.first_contact.finding import (
    MOST_NOTES,
    Finding,
    Offer,
    note_as_dict,
    noted,
    opened_from_rows,
)
from modular_tf.first_contact.relocations import stray_relocation
from modular_tf.loading.late_libraries import opened_since
from modular_tf.loading.opened_by_name import unlinkable_neighbours
from modular_tf.native.device_calls import announce_calls
from modular_tf.native.library import unmapped_count
from modular_tf.opening import OpenedPlugin
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import NEIGHBOURS_LINKABLE
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.first_contact.journal import Journal
    from modular_tf.loading.task import Task


_MOST_OF_NOTES = 1 << 20  # bytes of JSON: a quarter of the longest entry that the watcher takes


class Rehearsal:
    """Opens one plugin, holds all that it offers at once as the application does, and closes it.

    What an application decides of devices (`memory`, `copy_streams`) is no part of it: a plugin
    learns of that with the first stream or memory, and none is made here.

    Attributes:
        faults: Violations for which it is not mapped at all.

    Args:
        task: The plugin.
        journal: Takes each call before it is made.
    """

    def __init__(self, task: Task, journal: Journal) -> None:
        self.faults: list[Violation] = []
        self._task = task
        self._journal = journal
        self._opened = OpenedPlugin(task, before=journal.enter)

    def perform(self) -> Finding:
        """Open the plugin, query what it has, close it, and return what was found."""
        task, opened = self._task, self._opened
        for file in (*task.companions, task.file):
            if (stray := stray_relocation(file)) is not None:
                self.faults.append(Violation(WHOLE_ELF, f"{file} is damaged: {stray}"))
                return Finding(offer=Offer())
        unmapped = unmapped_count()
        announce_calls(self._journal.enter)
        try:
            opened.open()
        except ModularTFError as error:  # a shortage: this process is the plugin's
            opened.fail("load", error)
        if opened.platform is not None:
            with suppress(ModularTFError):
                self._query_devices(opened.platform)
        offer = Offer.of(opened)
        opened.close()
        libraries: list[SeenFile] = []
        is_complete = True
        if opened.library is not None:
            libraries, is_complete = opened_since(opened.library)
        if unmapped_count() != unmapped:  # it is unknown which library that was
            is_complete = False
        described = [it for it in libraries if _is_describable([it])]
        if len(described) < len(libraries) or not _is_describable(described):
            is_complete = False
            described = described if _is_describable(described) else []
        return bounded_finding(offer, opened.notes, described, is_complete=is_complete)

    def _query_devices(self, platform: DevicePlatform) -> None:
        count = platform.device_count()
        if not count:
            task = self._task
            self._opened.note("init", unlinkable_neighbours(task.file, task.companions))
        for ordinal in range(count):
            self._journal.device = ordinal
            with suppress(ModularTFError):  # a device that fails does not hide the others
                platform.device_details(ordinal)
                executor = platform.executor(ordinal)
                self._journal.enter("device_memory_usage")
                executor.memory_usage()
        self._journal.device = None


def bounded_finding(
    offer: Offer,
    notes: Iterable[Violation],
    opened: Iterable[SeenFile] = (),
    *,
    is_complete: bool = True,
) -> Finding:
    """Return the finding, with at most as many notes as the watcher accepts, errors first then."""
    all_notes = [noted(note) for note in notes]
    kept: list[Violation] = []
    left = _MOST_OF_NOTES
    too_many = len(all_notes) > MOST_NOTES or sum(map(_size, all_notes)) > left
    for note in sorted(all_notes, key=lambda note: too_many and not note.is_error):
        left -= _size(note)
        if left < 0 or len(kept) == MOST_NOTES:
            break
        kept.append(note)
    # The files beside the plugin may change, and the finding does not depend on them.
    lasting = is_complete and all(note.rule != NEIGHBOURS_LINKABLE for note in kept)
    return Finding(None, offer, tuple(kept), tuple(opened), lasting)


def _is_describable(files: list[SeenFile]) -> bool:
    """Return whether the watcher accepts these files as what was opened."""
    try:
        opened_from_rows([file.as_row() for file in files])
    except ValueError:
        return False
    return True


def _size(note: Violation) -> int:
    return len(json.dumps(note_as_dict(note)))
