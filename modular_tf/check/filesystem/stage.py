"""A filesystem that is loaded and ready for checks, by its slots or through this package."""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.breach import Breach, raise_breach
from modular_tf.check.filesystem.call_journal import CallJournal
from modular_tf.check.filesystem.ground import FilesystemGround
from modular_tf.check.filesystem.host_access import HostAccess
from modular_tf.check.filesystem.raw_access import RawAccess
from modular_tf.check.filesystem.stage_root import StageRoot
from modular_tf.check.outcome import Pass
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.host_subject import HostFilesystem
    from modular_tf.check.filesystem.raw_subject import RawFilesystem
    from modular_tf.check.target import Target


class FilesystemStage:
    """Loads the plugin; it keeps the protocol `Stage`.

    A plugin that cannot be loaded blocks every check: checks of the library say why.

    Args:
        target: What to load and how to reach it.

    Attributes:
        target: The same.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._journal = CallJournal()
        self._why_not: str | None = None
        self._access: RawAccess | HostAccess | None = None
        try:
            kind = RawAccess if target.reached is Pass.RAW else HostAccess
            self._access = kind(target, self._journal)
        except (Blocked, ModularTFError) as error:
            self._why_not = str(error)
        self._root = StageRoot(target)

    @property
    def calls(self) -> list[str]:
        """The calls of the current check."""
        return self._journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that cannot be called, None where all can."""
        if self._access is None:
            return None
        subject = self._access.subject
        return next((slot for slot in needs if not subject.offers(slot)), None)

    @contextmanager
    def ground(self, check: Check) -> Iterator[FilesystemGround]:
        """Make an empty directory for a check, and remove it afterwards.

        Raises:
            Blocked: The plugin could not be loaded, or the directory not be made.
            Breach: On the way out: the plugin did harm that no call has shown.
        """
        subject = self._subject()
        root = self._root.make(subject, check)
        self.calls.clear()
        seeded = random.Random(f"{self.target.seed}:{check.id}")  # noqa: S311  (to be repeated)
        try:
            yield FilesystemGround(subject, root, self.target, seeded)
        except BaseException:
            with suppress(Breach):  # the check has failed already
                self._tidy(subject, root)
            raise
        self._tidy(subject, root)

    def _tidy(self, subject: RawFilesystem | HostFilesystem, root: str) -> None:
        """Remove what is left, and look for harm that no call has shown."""
        kept = list(self.calls)
        try:
            self._root.remove(subject, root)
        finally:
            self.calls[:] = kept
        raise_breach(subject.heap, "the check", deep=True)

    def _subject(self) -> RawFilesystem | HostFilesystem:
        if self._access is None:
            raise Blocked(f"the plugin cannot be loaded: {self._why_not}")
        return self._access.subject

    def close(self) -> None:
        """Take the filesystem down."""
        if self._access is not None:
            self._access.close()
