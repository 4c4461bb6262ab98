"""Ranges of bytes on the command line: `0-99`, `100-` and `-50`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.files import RandomAccessFile

_FORM = re.compile(r"(\d*)-(\d*)", re.ASCII)


class ByteRange(NamedTuple):
    """Some bytes of a file.

    Attributes:
        start: The position of the first byte; a negative one counts from the end of the file.
        end: The position behind the last byte; None for the end of the file.
    """

    start: int = 0
    end: int | None = None

    @classmethod
    def parse(cls, text: str) -> ByteRange:
        """Return the range of a text, whose ends are both within the range, as in HTTP.

        Raises:
            argparse.ArgumentTypeError: It is none.
        """
        match = _FORM.fullmatch(text)
        first, last = match.groups() if match else ("", "")
        if first and last and int(first) <= int(last):
            return cls(int(first), int(last) + 1)
        if first and not last:
            return cls(int(first))
        if last and not first and int(last):
            return cls(-int(last))
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range: 0-99 is the first 100 bytes, 100- what follows them, "
            "-50 the last 50"
        )

    def within(self, place: Place, file: RandomAccessFile) -> ByteRange:
        """Return the range counted from the begin of a file, whose length is asked for at need."""
        if self.start >= 0:
            return self
        return ByteRange(max(0, length_of(place, file) + self.start), self.end)


def length_of(place: Place, file: RandomAccessFile) -> int:
    """Return the length of an open file, learned when it was opened where that is so."""
    known = file.known_length()
    return place.filesystem.get_file_size(place.uri) if known is None else known
