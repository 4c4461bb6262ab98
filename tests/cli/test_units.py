"""How sizes are written, and which values of options are taken."""

import threading

import pytest

from modular_tf.cli.output import size
from modular_tf.cli.values import seconds


@pytest.mark.parametrize(
    ("n_bytes", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1024, "1023.0 KiB"),
        (1024**2, "1.0 MiB"),
        (1000 * 1024**3, "1000.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_a_size_has_the_largest_unit_that_it_fills(n_bytes, told):
    assert size(n_bytes) == told


INVALID = {
    "fs find x --min-size=": (
        "is not a size such as 100, 64K or 1.5GiB",
        ["", "-1", "1X", "x", "1.2.3"],
    ),
    "fs cat x --range=": (
        "is not a range",
        ["", "-", "5", "9-5", "-0", "a-b", "1-2-3", "0-٣"],
    ),
    "devices --timeout=": (
        "no number of seconds above 0",
        ["0", "-1", "nan", "inf", "1e300", "x", ""],
    ),
    "fs cp x ram://x -j=": ("'-j'", ["0", "-1", "257", "many"]),
}
"""By the beginning of a command line: the complaint about its value, and values that get it."""


@pytest.mark.parametrize(
    ("line", "value"), [(line, value) for line, (_, values) in INVALID.items() for value in values]
)
def test_an_invalid_value_is_wrong_usage(mtf, line, value):
    ended = mtf(*f"{line}{value}".split(" "))

    assert (ended.code, ended.out) == (2, b"")
    assert INVALID[line][0] in ended.err


def test_any_wait_that_threads_can_do_is_a_time_limit():
    assert seconds("0.001") == 0.001
    assert seconds(str(threading.TIMEOUT_MAX)) == threading.TIMEOUT_MAX
