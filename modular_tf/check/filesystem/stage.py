"""A filesystem that is loaded and ready for checks, by its slots or through this package."""

from __future__ import annotations

import os
import random
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.breach import Breach
from modular_tf.check.call_journal import CallJournal
from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.filesystem.host_subject import HostFilesystem
from modular_tf.check.filesystem.prepared_files import PreparedGround
from modular_tf.check.filesystem.raw_subject import open_raw
from modular_tf.check.filesystem.stage_root import StageRoot
from modular_tf.check.outcome import Pass
from modular_tf.check.temporary_state import temporary_state
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.errors import ConfigError
from modular_tf.loading.binding import map_file
from modular_tf.loading.filesystem_tables import (
    FILESYSTEM_INIT,
    FilesystemTables,
    RefusedTables,
    init_filesystems,
)
from modular_tf.rules.keys import values_of
from modular_tf.service.configuration import ISOLATION_VARIABLE, Config
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
        # Who has a plugin checked trusts it: it ran already when the checks were planned.
        trust = TrustPolicy(allow_writable=("*",))
        isolation = {ISOLATION_VARIABLE: os.environ.get(ISOLATION_VARIABLE, "")}
        try:
            said = values_of(Config, isolation)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        # The next process of a random sequence must not find the plugin in quarantine for the last.
        said |= {"tell_ended_calls": False}
        config = Config(first_contact="never", load="eager", trust=trust, **said)
        with temporary_state(target.scratch):
            self._service = PluginService(config=config, plugin_paths=[target.path], bundled=False)
            report = self._service.load(target.path)
        entry = self._service.entry(target.path)
        tables = entry.tables.get(target.scheme or "")
        if tables is None:
            self._service.close()
            found = [reason for plugin in report.plugins for reason in plugin.reasons]
            reasons = "; ".join(reason.message for reason in found) or "the plugin does not name it"
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
        library = map_file(target.path, target.companions, target.absent)
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


class FilesystemStage:
    """Loads the plugin; it keeps the protocol `Stage`.

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
        self.target = target
        self._journal = CallJournal()
        kind = RawAccess if target.reached is Pass.RAW else HostAccess
        self._access: RawAccess | HostAccess = kind(target, self._journal)
        self.subject: RawFilesystem | HostFilesystem = self._access.subject
        self._root = StageRoot(target)

    @property
    def calls(self) -> list[str]:
        """The calls of the current check."""
        return self._journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that cannot be called, None where all can."""
        return next((slot for slot in needs if not self.subject.offers(slot)), None)

    @contextmanager
    def ground(self, check: Check) -> Iterator[FilesystemGround]:
        """Make an empty directory for a check, and remove it afterwards.

        Raises:
            Blocked: The directory could not be made.
            Breach: On the way out: the plugin did harm while the directory was removed.
        """
        seeded = random.Random(f"{self.target.seed}:{check.id}")  # noqa: S311  (to be repeated)
        if self.target.options.prepared:
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
