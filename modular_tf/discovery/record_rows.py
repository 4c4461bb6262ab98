"""The rows of a distribution's RECORD, which is CSV: path, hash and size of each installed file.

A RECORD may have tens of thousands of rows, and every start searches all of them. So rows that do
not match are skipped without parsing.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RecordRow", "rows_that_name"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A field with the comma, the end of the row or the end of the file behind it. In quotes there may
# be commas and line ends, and a quote is doubled; what follows the closing quote belongs to it.
_FIELD = rb'(?:"((?:[^"]|"")*)"?)?([^,\r\n]*)(,|\r\n?|\n|\Z)'


class RecordRow(NamedTuple):
    """The row of one file in a RECORD."""

    path: str  # as it is written: relative to where the distribution is installed, or absolute
    # Algorithm and value, as `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU`; blank for a file
    # that has none.
    hash: bytes


def rows_that_name(record: bytes, part: bytes) -> Iterator[RecordRow]:
    """Yield the rows whose path contains a text, in the order of the file.

    `record` may be any bytes; `part` is the text, without quotes, commas and line ends.
    """
    record = record.removeprefix(_BYTE_ORDER_MARK)
    rows = _quoted_rows(record) if b'"' in record else _plain_rows(record, part)
    for path, *more in rows:
        if part in path:
            yield RecordRow(os.fsdecode(path), more[0] if more else b"")


def _plain_rows(record: bytes, part: bytes) -> Iterator[list[bytes]]:
    at = record.find(part)
    while at >= 0:
        end = record.find(b"\n", at)
        end = len(record) if end < 0 else end
        for line in record[record.rfind(b"\n", 0, at) + 1 : end].split(b"\r"):
            yield line.split(b",")
        at = record.find(part, end)


def _quoted_rows(record: bytes) -> Iterator[list[bytes]]:
    row: list[bytes] = []
    for field in re.finditer(_FIELD, record):
        quoted, plain, end = field.groups()
        row.append((quoted or b"").replace(b'""', b'"') + plain)
        if end != b",":
            yield row
            row = []
