"""What the maker of a copy tells whoever asked for it."""

from __future__ import annotations


class CopyWatch:
    """What is told of a copy while it is made, by the thread that makes it; here to nobody.

    What a method raises ends the copy, and leaves the target as a failure does.
    """

    def begun(self, length: int | None) -> None:
        """Take the length of the source in bytes; None where it is not known."""

    def advance(self, n_bytes: int) -> None:
        """Take the number of bytes of a piece that the target's plugin has accepted."""

    def storing(self) -> None:
        """Learn that all bytes were accepted: now the target is closed, which may upload it."""

    def unfinished(self, uri: str | None, *, is_new: bool = True) -> None:
        """Take the name of a file that is not whole; None: there is none any more.

        Args:
            uri: Its name.
            is_new: The copy made it, so it is to be deleted. False for one that was there and may
                be a device or a pipe.
        """

    def whole(self) -> None:
        """Learn that the target is whole, before its source is deleted."""
