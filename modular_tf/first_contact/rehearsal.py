"""Runs in the child: loads a plugin as the application does, to learn what it offers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.device.platform import load_device_platform
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.filesystem.opening import open_filesystem
from modular_tf.first_contact.finding import (
    MOST_NOTES,
    Finding,
    Offer,
    PlatformOffer,
    note_as_dict,
    noted,
    opened_from_rows,
)
from modular_tf.first_contact.relocations import stray_relocation
from modular_tf.loading.additional_libraries import opened_since
from modular_tf.loading.bound_files import additional_libraries_of
from modular_tf.loading.device_loader import RefusedDevicePluginError
from modular_tf.loading.filesystem_tables import FilesystemTables, RefusedTables
from modular_tf.loading.kernel_loader import KERNEL_INIT, KernelOffer, init_kernels
from modular_tf.loading.loader import FILESYSTEM_INIT, init_filesystems, map_file
from modular_tf.loading.unlinkable_neighbours import unlinkable_neighbours
from modular_tf.native.device_calls import announce_calls
from modular_tf.native.library import unmapped_count
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import SCHEME_INIT_SUCCEEDS
from modular_tf.rules.first_contact import NEIGHBOURS_LINKABLE
from modular_tf.rules.loading import WHOLE_ELF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.first_contact.journal import Journal
    from modular_tf.first_contact.task import Task
    from modular_tf.native.library import Library


_MOST_OF_NOTES = 1 << 20  # bytes of JSON: a quarter of the longest entry that the watcher takes


class Rehearsal:
    """Loads one plugin, holds all that it offers at once as the application does, and closes it.

    What an application decides of devices (`memory`, `copy_streams`) is no part of it: a plugin
    learns of that with the first stream or memory, and none is made here.

    Attributes:
        notes: The violations so far.
        schemes: The schemes that it would register.
        platform: The device platform that it would register.
        kernels: The kernels that it would register.
        faults: Violations for which it is not mapped at all.
        opened: The libraries that its code opened, None where not all are known.

    Args:
        task: The plugin.
        journal: Takes each call before it is made.
    """

    def __init__(self, task: Task, journal: Journal) -> None:
        self.notes: list[Violation] = []
        self.schemes: list[str] = []
        self.platform: PlatformOffer | None = None
        self.kernels = KernelOffer()
        self.faults: list[Violation] = []
        self.opened: tuple[SeenFile, ...] | None = ()
        self._task = task
        self._journal = journal
        self._filesystems: list[PluginFilesystem] = []
        self._platform: DevicePlatform | None = None

    def finding(self) -> Finding:
        """Return the finding."""
        kernels = self.kernels
        counts = len(kernels.kernels), len(kernels.op_definitions)
        offer = Offer(tuple(self.schemes), self.platform, *counts)
        notes = self._kept_notes()
        # The files beside the plugin may change, and the finding does not depend on them.
        is_lasting = all(note.rule != NEIGHBOURS_LINKABLE for note in notes)
        lasting = self.opened is not None and is_lasting
        return Finding(None, offer, notes, self.opened or (), lasting)

    def _kept_notes(self) -> tuple[Violation, ...]:
        """Return the notes, at most as many as the watcher accepts; errors first where some go."""
        kept: list[Violation] = []
        room = _MOST_OF_NOTES
        too_many = len(self.notes) > MOST_NOTES or sum(map(_size, self.notes)) > room
        for note in sorted(self.notes, key=lambda note: too_many and not note.is_error):
            room -= _size(note)
            if room < 0 or len(kept) == MOST_NOTES:
                break
            kept.append(note)
        return tuple(kept)

    def perform(self) -> None:
        """Load the plugin, query what it has, and close it; violations go to `notes`."""
        task = self._task
        for file in (*task.companions, task.file):
            if (stray := stray_relocation(file)) is not None:
                self.faults.append(Violation(WHOLE_ELF, f"{file} is damaged: {stray}"))
                return
        unmapped = unmapped_count()
        self._journal.enter("a constructor of the library")
        try:
            library = map_file(task.file, task.companions, task.absent, checked=task.checked)
        except ModularTFError as error:
            self._note_error("load", error)
            return
        if "filesystem" in task.kinds:
            self._rehearse_filesystems(library)
        if "device" in task.kinds:
            self._rehearse_devices(library)
        if "kernel" in task.kinds:
            self._rehearse_kernels(library)
        self._close()
        self.opened = opened_since(additional_libraries_of(library))
        if unmapped_count() != unmapped:  # it is unknown which library that was
            self.opened = None
        try:
            opened_from_rows([file.as_row() for file in self.opened or ()])
        except ValueError:  # the watcher would reject the whole finding
            self.opened = None

    # -- filesystems ----------------------------------------------------------------------------

    def _rehearse_filesystems(self, library: Library) -> None:
        self._journal.enter(FILESYSTEM_INIT)
        try:
            offer = init_filesystems(library, plugin=self._task.plugin)
        except PluginError as error:
            self._note_error("init", error)
            return
        self._note_violations(offer.violations)
        for entry in offer.entries:
            if isinstance(entry, RefusedTables):
                self._note_violations(entry.violations, scheme=entry.scheme)
            else:
                self._note_violations(entry.warnings, scheme=entry.scheme)
                self._rehearse_scheme(entry)

    def _rehearse_scheme(self, tables: FilesystemTables) -> None:
        self._journal.enter(f"init of scheme {tables.scheme!r}")
        task = self._task
        try:
            filesystem, warnings = open_filesystem(
                tables, plugin=task.plugin, path=task.file, bundled=False
            )
        except ModularTFError as error:
            failure = Violation(SCHEME_INIT_SUCCEEDS, error.message)
            self._note_violations([failure], tables.scheme)
            return
        self._note_violations(warnings)
        self._filesystems.append(filesystem)
        if tables.scheme not in self.schemes:
            self.schemes.append(tables.scheme)

    # -- devices --------------------------------------------------------------------------------

    def _rehearse_devices(self, library: Library) -> None:
        announce_calls(self._journal.enter)
        try:
            platform = load_device_platform(library, plugin_name=self._task.plugin)
        except RefusedDevicePluginError as error:
            self._note_violations(error.violations)
            if not any(note.is_error for note in self.notes):
                self._note_error("init", error)
            return
        self._note_violations(platform.warnings)
        self.platform = PlatformOffer.of(platform)
        self._platform = platform
        with suppress(ModularTFError):
            self._look_at_devices(platform)

    def _look_at_devices(self, platform: DevicePlatform) -> None:
        count = platform.device_count()
        if not count:
            self._note_violations(unlinkable_neighbours(self._task.file, self._task.companions))
        for ordinal in range(count):
            self._journal.device = ordinal
            with suppress(ModularTFError):  # a device that fails does not hide the others
                platform.device_details(ordinal)
                executor = platform.executor(ordinal)
                self._journal.enter("device_memory_usage")
                executor.memory_usage()
        self._journal.device = None

    # -- kernels --------------------------------------------------------------------------------

    def _rehearse_kernels(self, library: Library) -> None:
        self._journal.enter(KERNEL_INIT)
        self.kernels = init_kernels(library, plugin=self._task.plugin)
        self._note_violations(self.kernels.violations)

    # -- the end --------------------------------------------------------------------------------

    def _close(self) -> None:
        """Close all, in the order of the application."""
        for filesystem in self._filesystems:
            self._journal.enter(f"cleanup of scheme {filesystem.scheme!r}")
            with suppress(ModularTFError):
                filesystem.close()
        if self._platform is not None:
            with suppress(ModularTFError):
                self._platform.close()

    # -- notes ----------------------------------------------------------------------------------

    def _note_error(self, stage: str, error: ModularTFError) -> None:
        self.notes.append(noted(Violation.of_error(error, stage)))

    def _note_violations(self, violations: Iterable[Violation], scheme: str | None = None) -> None:
        self.notes += [noted(found.of_scheme(scheme).at("init")) for found in violations]


def _size(note: Violation) -> int:
    return len(json.dumps(note_as_dict(note)))
