"""Limits and switches of arenas, with the numbers that were observed in TensorFlow 2.21."""

from __future__ import annotations

import logging

import pytest

from modular_tf.device.memory.memory_settings import (
    MemorySettings,
    device_bytes_limit,
    environment_settings,
    host_bytes_limit,
    memory_growth,
)
from modular_tf.errors import InternalError

MIB = 1 << 20
GIB = 1 << 30


def said(variable, text):
    """Return what the environment says with this variable; None leaves it out."""
    return environment_settings({} if text is None else {variable: text})


@pytest.mark.parametrize(
    ("free", "limit"),
    [
        (GIB, 806354944),
        (4_000_000_000, 3685427200),
        (100_000_000, 100_000_000),
        (255 * MIB + 1, 1),
        (2 * GIB - 1, 2 * GIB - 1 - 255 * MIB),
        (2 * GIB, 2 * GIB - 300 * MIB),
        (100 * GIB, 94 * GIB),
    ],
)
def test_the_limit_leaves_some_to_the_system(free, limit):
    assert device_bytes_limit(free, 200 * GIB) == limit


def test_a_fraction_is_of_the_total_and_less_than_no_memory_is_refused():
    for fraction, limit in ((0.5, 4 * GIB), (None, 724 * MIB)):
        assert device_bytes_limit(GIB - 45 * MIB, 8 * GIB, fraction) == limit
    for usage in ((-1, GIB), (GIB, -1)):
        with pytest.raises(InternalError, match="device_memory_usage reported"):
            device_bytes_limit(*usage)


def test_growth_is_for_the_plugin_the_environment_and_the_user_to_say(caplog):
    texts = {None: None, "": None, "true": True, "false": False, "False": None, "1": None}
    for text, growth in texts.items():
        assert said("TF_FORCE_GPU_ALLOW_GROWTH", text).growth is growth
    for wanted in (None, False, True):
        settings = MemorySettings(growth=wanted)
        assert memory_growth(settings, forced_by_plugin=False) is bool(wanted)
        with caplog.at_level(logging.WARNING, "modular_tf.device"):
            assert memory_growth(settings, forced_by_plugin=True)
        assert ("memory_growth.forced" in caplog.text) is (wanted is False)
        caplog.clear()


def test_garbage_is_collected_unless_the_environment_says_no():
    for text in (None, "", "true", "1", "True", "maybe", "false", "0", "FALSE"):
        found = said("TF_ENABLE_GPU_GARBAGE_COLLECTION", text).garbage_collection
        assert (found is not False) is (text not in {"false", "0", "FALSE"})


def test_the_host_limit_is_in_mebibytes():
    for text, limit in {"64": 64 * MIB, "0": 0}.items():
        assert host_bytes_limit(said("TF_GPU_HOST_MEM_LIMIT_IN_MB", text)) == limit
    for none in (None, "", "-5", "1.5", "many", "²", "9" * 30, "1" * 5000):
        assert host_bytes_limit(said("TF_GPU_HOST_MEM_LIMIT_IN_MB", none)) == 128 * GIB


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TF_ENABLE_GPU_GARBAGE_COLLECTION", "perhaps"),
        ("TF_GPU_HOST_MEM_LIMIT_IN_MB", "lots"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "on"),
    ],
)
def test_what_cannot_be_read_is_logged(caplog, variable, text):
    with caplog.at_level(logging.WARNING, "modular_tf.device"):
        assert said(variable, text) == MemorySettings()

    assert variable in caplog.text
    assert text in caplog.text
