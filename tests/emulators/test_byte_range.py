from __future__ import annotations

import pytest

from tests.emulators.byte_range import ByteRange, UnsatisfiableRange, requested_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-3", ByteRange(0, 3, 10)),
        ("bytes=4-", ByteRange(4, 9, 10)),
        ("bytes=8-99", ByteRange(8, 9, 10)),
        ("bytes=-3", ByteRange(7, 9, 10)),
        ("bytes=-99", ByteRange(0, 9, 10)),
        ("bytes=5-4", None),
        ("bytes=0-1,3-4", None),
        ("bytes=-", None),
        ("lines=0-3", None),
        (None, None),
    ],
)
def test_a_range_selects_bytes_inside_the_resource(header, expected):
    assert requested_range(header, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=11-12", "bytes=-0"])
def test_a_range_behind_the_end_is_unsatisfiable(header):
    with pytest.raises(UnsatisfiableRange):
        requested_range(header, 10)


def test_content_range_counts_both_ends():
    assert ByteRange(2, 5, 10).content_range == "bytes 2-5/10"
