"""A filesystem that is loaded and ready for checks, by its slots or through this package."""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.breach import Breach
from modular_tf.check.call_journal import CallJournal
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.filesystem.host_access import HostAccess
from modular_tf.check.filesystem.prepared_files import OPTION, PreparedGround
from modular_tf.check.filesystem.raw_access import RawAccess
from modular_tf.check.filesystem.stage_root import StageRoot
from modular_tf.check.outcome import Pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.host_subject import HostFilesystem
    from modular_tf.check.filesystem.raw_subject import RawFilesystem
    from modular_tf.check.target import Target


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
