"""A filesystem that is loaded and ready for checks, by its slots or through this package."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.breach import Breach
from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.filesystem.hosted import HostFilesystem
from modular_tf.check.filesystem.prepared_files import OPTION, PreparedGround
from modular_tf.check.filesystem.raw_subject import open_raw
from modular_tf.check.filesystem.stage_root import StageRoot
from modular_tf.check.outcome import Pass
from modular_tf.check.session import Session, mapped_library, opened_service, random_for
from modular_tf.errors import ConfigError
from modular_tf.loading.filesystem_tables import (
    FILESYSTEM_INIT,
    FilesystemTables,
    RefusedTables,
    init_filesystems,
)
from modular_tf.rules.keys import values_of
from modular_tf.service.configuration import ISOLATION_VARIABLE, Config

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.check.call_journal import CallJournal
    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.raw_subject import RawFilesystem
    from modular_tf.check.target import Target
    from modular_tf.rules import Violation


class HostAccess:
    """Opens a service that serves one plugin.

    Args:
        target: The library and the scheme.
        journal: Records each call.

    Attributes:
        subject: The filesystem.

    Raises:
        Blocked: The service does not serve the scheme.
        ModularTFError: The plugin could not be loaded.
    """

    def __init__(self, target: Target, journal: CallJournal) -> None:
        journal.enter("PluginService.load")
        isolation = {ISOLATION_VARIABLE: os.environ.get(ISOLATION_VARIABLE, "")}
        try:
            said = values_of(Config, isolation)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._service = opened_service(target, **said)
        entry = self._service.entry(target.path)
        tables = entry.tables.get(target.scheme or "")
        if tables is None:
            found = "; ".join(reason.message for reason in entry.plugin.record().reasons)
            self._service.close()
            reasons = found or "the plugin does not name it"
            raise Blocked(f"scheme {target.scheme!r} is not served: {reasons}")
        filesystem = self._service.filesystem(target.scheme or "")
        self.subject = HostFilesystem(filesystem, tables, journal)

    def close(self) -> None:
        """Close the service."""
        self._service.close()


class RawAccess:
    """Maps a library and initialises one of its filesystems.

    Args:
        target: The library and the scheme.
        journal: Records each call.

    Attributes:
        subject: The filesystem.

    Raises:
        Blocked: It offers no such scheme, or its tables were refused, or `init` failed.
        PluginError: The library cannot be mapped.
    """

    def __init__(self, target: Target, journal: CallJournal) -> None:
        journal.enter("a constructor of the library")
        library = mapped_library(target)
        journal.enter(FILESYSTEM_INIT)
        offer = init_filesystems(library, plugin=target.path)
        entry = next((one for one in offer.entries if one.scheme == target.scheme), None)
        if not isinstance(entry, FilesystemTables):
            raise Blocked(_why_not(target, offer.violations, entry))
        self.subject = open_raw(entry, journal)

    def close(self) -> None:
        """Clean up what was left open, then the filesystem."""
        self.subject.close_left_open()
        self.subject.cleanup()


def _why_not(target: Target, found: Iterable[Violation], entry: RefusedTables | None) -> str:
    violations = [*found, *(entry.violations if entry is not None else ())]
    reasons = "; ".join(str(violation.message) for violation in violations if violation.is_error)
    return f"scheme {target.scheme!r} is not usable: {reasons or 'the plugin does not name it'}"


class FilesystemStage(Session):
    """Loads the plugin.

    Args:
        target: What to load and how to reach it.

    Attributes:
        target: The same.
        subject: The filesystem, initialised.

    Raises:
        Blocked: It offers no such scheme, its tables were refused, or its `init` failed.
        ModularTFError: It cannot be loaded.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        kind = RawAccess if target.reached is Pass.RAW else HostAccess
        self._access: RawAccess | HostAccess = kind(target, self.journal)
        self.subject: RawFilesystem | HostFilesystem = self._access.subject
        self._root = StageRoot(target)

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that cannot be called, None where all can."""
        return next((slot for slot in needs if not self.subject.offers(slot)), None)

    @contextmanager
    def workspace(self, check: Check) -> Iterator[FilesystemGround]:
        """Make an empty directory for a check, and remove it afterwards.

        Raises:
            Blocked: The directory could not be made.
            Breach: On the way out: the plugin did harm while the directory was removed.
        """
        seeded = random_for(self.target, check.id)
        if self.target.options.get(OPTION):
            yield PreparedGround.of(self.subject, self.target, seeded)
            return
        root = self._root.make(self.subject, check)
        self.calls.clear()
        try:
            yield FilesystemGround(self.subject, root, self.target, seeded)
        except BaseException:
            with suppress(Breach):  # the check has failed already
                self._tidy(root)
            raise
        self._tidy(root)

    def _tidy(self, root: str) -> None:
        """Remove what is left, behind the calls of the check."""
        kept = list(self.calls)
        try:
            self._root.remove(self.subject, root)
        finally:
            self.calls[:] = kept

    def close(self) -> None:
        """Remove the directory of all roots, and take the filesystem down."""
        self._root.close(self.subject)
        self._access.close()
