"""From a library's file to an initialised filesystem, without a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.raw_subject import open_raw
from modular_tf.loading.filesystem_tables import FilesystemTables, RefusedTables
from modular_tf.loading.loader import FILESYSTEM_INIT, init_filesystems, map_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.call_journal import CallJournal
    from modular_tf.check.target import Target
    from modular_tf.rules import Violation


class RawAccess:
    """Maps a library and initialises one of its filesystems.

    Args:
        target: The library and the scheme.
        journal: Is told of each call.

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
