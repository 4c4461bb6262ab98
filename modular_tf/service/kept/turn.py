"""One of several processes finds something out, while the others wait for its answer.

The turn is a lock of the kernel on a file, so it ends with its process, however that ends. Nobody
waits longer than its owner makes progress. Where no file can be locked, each process works alone.
"""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from modular_tf.concurrency.live_objects import LiveObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from io import FileIO

    from modular_tf.service.kept.private_directory import PrivateDirectory

_NAME = "turn"
_POLL_S = 0.02
_MOST_PATIENCES = 20  # however much progress other owners make
_Item = TypeVar("_Item")


class _OfThread(threading.local):
    """The locked file of the thread, for which a signal handler in `find_out` must not wait."""

    file: FileIO | None = None


_mine = _OfThread()
_opened: LiveObjects[FileIO] = LiveObjects()


class Turn:
    """The turn of this user's processes, by a file in a directory. [any thread]"""

    def __init__(self, directory: PrivateDirectory) -> None:
        self._directory = directory

    def find_out(
        self,
        items: Sequence[_Item],
        *,
        unknown: Callable[[Sequence[_Item]], Sequence[_Item]],
        find_out: Callable[[Sequence[_Item], Callable[[], None]], None],
        patience_s: float,
        check: Callable[[], None],
    ) -> None:
        """Find something out about items, except what other processes find out meanwhile.

        The process that has the turn does the work. The others wait, read what was stored, and take
        the turn for what is still unknown. The work of an owner that is stopped is done again.

        Args:
            items: What to find out about.
            unknown: Reads what is stored by now; returns the items about which nothing is.
            find_out: Finds it out and stores it, before it returns. Calls its second argument
                whenever there is progress.
            patience_s: How long an owner may go without progress.
            check: Called again and again while it waits; what it raises ends that.
        """
        end = monotonic() + _MOST_PATIENCES * patience_s
        left = items
        outer = _mine.file
        with self._open() as file:
            try:
                while left and not (is_ours := _lock(file, shared=False)):
                    if not self.wait(file, patience_s, end, check):
                        break
                    left = unknown(left)
                if left and (left := unknown(left)):
                    _mine.file = file or outer
                    find_out(left, lambda: _touch(file) if is_ours else None)
            finally:
                _mine.file = outer
                _unlock(file)

    def wait(
        self, file: FileIO | None, patience_s: float, end: float, check: Callable[[], None]
    ) -> bool:
        """Wait until nobody has the turn; return False if its owner is stopped, or hangs.

        It hangs if it made no progress for `patience_s`. At `end`, a time of `monotonic`, the wait
        ends anyway. `check` is called again and again, and what it raises ends the wait.
        """
        last = _touched_ns(file)
        deadline = monotonic() + patience_s
        while not _lock(file, shared=True):
            check()
            sleep(_POLL_S)
            if (progress := _touched_ns(file)) != last:
                last, deadline = progress, monotonic() + patience_s
            if monotonic() > min(deadline, end):
                return False
        _unlock(file)
        return True

    def _open(self) -> FileIO | nullcontext[None]:
        if _mine.file is not None:
            return nullcontext()
        opened = self._directory.open_for_lock(_NAME)
        if not isinstance(opened, nullcontext):
            _opened.add(opened)
        return opened


def _lock(file: FileIO | None, *, shared: bool) -> bool:
    """Lock a file, unless another process has; return whether it need not be waited for."""
    if file is None:
        return True
    import fcntl  # noqa: PLC0415  (only who finds something out needs it)

    try:
        fcntl.flock(file.fileno(), (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, ValueError):  # no locks there; or closed, in the child of a handler's fork
        return True
    return True


def _unlock(file: FileIO | None) -> None:
    """Release the lock of a file; a forked child may have the file too, and would keep the lock."""
    if file is not None:
        import fcntl  # noqa: PLC0415  (as above)

        with suppress(OSError, ValueError):
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def _touch(file: FileIO | None) -> None:
    with suppress(OSError, ValueError):  # closed in a forked child
        if file is not None:
            os.utime(file.fileno())


def _touched_ns(file: FileIO | None) -> int:
    with suppress(OSError, ValueError):
        return 0 if file is None else os.fstat(file.fileno()).st_mtime_ns
    return 0


def _close_in_child() -> None:
    """Leave the parent its turn, which must neither outlive it nor end before it."""
    for file in _opened.all():
        file.close()


os.register_at_fork(after_in_child=_close_in_child)
