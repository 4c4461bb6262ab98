"""How sizes are told, and which time limits are taken."""

import threading

import click
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


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "x", ""])
def test_a_time_limit_is_a_number_of_seconds_above_0(text):
    with pytest.raises(click.BadParameter, match="no number of seconds above 0"):
        seconds(text)


def test_any_wait_that_threads_can_do_is_a_time_limit():
    assert seconds("0.001") == 0.001
    assert seconds(str(threading.TIMEOUT_MAX)) == threading.TIMEOUT_MAX
