"""Target: the rows of a RECORD, against Python's own reader of CSV."""

from __future__ import annotations

import csv
import os
from io import StringIO

from modular_tf.discovery.sources.distributions import libraries_in_record
from modular_tf.discovery.trust.record import rows_that_name

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECES = (
    *(b"pkg/", b"./", b"//", b"..", b"lib", b"x.so", b"y.so.3", b".so", b" ", b"=", b"sha256="),
    *(b'"', b'"', b'""', b'",', b',"', b",", b",", b"\n", b"\n", b"\r\n", b"\r"),
    *(b"\xff", _BYTE_ORDER_MARK, "é".encode(), b"\t", b"\x0b", b"\x1c", "\u2028".encode()),
)
_ROWS = (
    b"pkg/x.so,sha256=AAAA,1\n",
    b'"pkg/x.so","sha256=AAAA",1\r\n',
    b'"a, ""b""\nx.so",,\n',
    b"pkg/other.py,sha256=AAAA,1\n",
)


def make(dice):
    pieces = [dice.choice(_ROWS if dice.random() < 0.4 else _PIECES) for _ in range(8)]
    return b"".join(pieces[: dice.randint(0, 8)])


def check(given):
    text = os.fsdecode(given.removeprefix(_BYTE_ORDER_MARK))
    expected = [
        (row[0], os.fsencode(row[1]) if len(row) > 1 else b"")
        for row in csv.reader(StringIO(text, newline=""))
        if row and "x.so" in row[0]
    ]
    found = [tuple(row) for row in rows_that_name(given, b"x.so")]
    assert found == expected
    assert [path for path, _ in found if path.endswith("x.so")] == [
        path for path in libraries_in_record(given) if path.endswith("x.so")
    ]
    return "quoted" if b'"' in given else "plain"
