"""What the work on many files has come to so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.cli.text import counted, size
from modular_tf.concurrency.fork_lock import ForkLock

if TYPE_CHECKING:
    from modular_tf.cli.fs.place import Place


class Unfinished(NamedTuple):
    """A file that is not whole.

    Attributes:
        place: Where it is; the target of a copy, or a file beside it.
        is_new: The copy made it.
    """

    place: Place
    is_new: bool


class UnderWay(NamedTuple):
    """What the work on files has come to, at one moment.

    Attributes:
        files: Files that are done.
        storing: The targets that are being stored.
        unfinished: By targets, the files that are not whole.
    """

    files: int
    storing: list[str]
    unfinished: dict[str, Unfinished]


class Totals:
    """Counts of files and bytes. [any thread]

    Attributes:
        files: Files that are done.
        known: Files that are known of, done or not; more may be found.
        bytes: Bytes of files that were accepted.
        failed: What failed.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._started = time.monotonic()
        self._sized = self._sized_bytes = 0
        self._storing: dict[str, float] = {}
        self._unfinished: dict[str, Unfinished] = {}
        self.files = self.known = self.bytes = self.failed = 0

    def find(self, count: int) -> None:
        """Add files that are known now, or take some away that are none."""
        with self._lock:
            self.known += count

    def begin(self, length: int) -> None:
        """Count the length in bytes of a file whose copying begins."""
        with self._lock:
            self._sized += 1
            self._sized_bytes += length

    def count_failure(self) -> None:
        """Count a failure that is told while others are worked on."""
        with self._lock:
            self.failed += 1

    def add_bytes(self, count: int) -> None:
        """Count bytes that were accepted, or with a negative number take them back."""
        with self._lock:
            self.bytes += count

    def end(self, target: str = "") -> None:
        """Count a file that is done, whose target is not under way any more."""
        with self._lock:
            self.files += 1
            self._storing.pop(target, None)

    def store(self, uri: str) -> None:
        """Note that all bytes of a file were accepted, and it is being stored."""
        with self._lock:
            self._storing[uri] = time.monotonic()

    def leave(self, uri: str) -> None:
        """Note that nothing is under way any more for a target."""
        with self._lock:
            self._storing.pop(uri, None)

    def note_unfinished(self, target: str, file: Unfinished | None) -> None:
        """Note what is left that is not whole if the process ends now; None for nothing."""
        with self._lock:
            if file is None:
                self._unfinished.pop(target, None)
            else:
                self._unfinished[target] = file

    @property
    def storing(self) -> dict[str, float]:
        """The files that are being stored, and since when (monotonic seconds)."""
        with self._lock:
            return dict(self._storing)

    def under_way(self) -> UnderWay:
        """Return what is under way, and how many files are done without it."""
        with self._lock:
            return UnderWay(self.files, list(self._storing), dict(self._unfinished))

    @property
    def seconds(self) -> float:
        """Since the work began."""
        return max(time.monotonic() - self._started, 1e-6)

    def expected_bytes(self) -> int | None:
        """Return the bytes of all known files; those of unknown size count as the average."""
        with self._lock:
            if not self._sized:
                return None
            rest = max(self.known - self._sized, 0)
            return self._sized_bytes + rest * self._sized_bytes // self._sized

    def as_object(self) -> dict[str, float]:
        """Return the totals as JSON output has them."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "failed": self.failed,
        }

    def summary(self, done: str) -> str:
        """Return one line, such as "200 files copied, 12.5 MiB in 0.9 s, 13.9 MiB/s".

        Args:
            done: What was done to the files.
        """
        text = f"{counted(self.files, 'file')} {done}"
        if self.bytes:
            text += f", {size(self.bytes)}"
        text += f" in {self.seconds:.1f} s"
        if self.bytes:
            text += f", {size(self.bytes / self.seconds)}/s"
        return text + (f"; {self.failed} failed" if self.failed else "")
