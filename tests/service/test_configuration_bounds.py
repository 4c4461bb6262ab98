"""The numbers that a configuration file may hold: the first and the last, and none beyond."""

from __future__ import annotations

import pytest

from modular_tf.errors import ConfigError
from modular_tf.service.configuration import parse_config

_BOUNDS = {
    "calls_at_once": (1, 256),
    "copy_streams": (1, 4),
    "first_contact_memory_mib": (1, 2**30),
    "first_contact_timeout_s": (0.001, 1_000_000),
    "watch_poll_interval_s": (0.001, 1_000_000),
    "close_timeout_s": (0.001, 1_000_000),
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, bounds in _BOUNDS.items() for value in bounds]
)
def test_a_bound_is_accepted(key, value, tmp_path):
    config = parse_config(f"{key} = {value}", str(tmp_path / "c.toml"))

    assert getattr(config, key) == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key, (least, most) in _BOUNDS.items()
        for value in (0 if least == 1 else 0.0009, most + 1)
    ],
)
def test_what_is_beyond_a_bound_is_an_error(key, value, tmp_path):
    with pytest.raises(ConfigError, match=f"{key}: expected .*, found {value}"):
        parse_config(f"{key} = {value}", str(tmp_path / "c.toml"))
