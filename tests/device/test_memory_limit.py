"""Limits and switches of arenas, with the numbers that were observed in TensorFlow 2.21."""

from __future__ import annotations

import logging

import pytest

from modular_tf.device.memory_limit import (
    device_bytes_limit,
    garbage_collection,
    host_bytes_limit,
    memory_growth,
    system_reserve,
)
from modular_tf.errors import InternalError, InvalidArgumentError

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "limit"),
    [
        (GIB, 806354944),
        (4_000_000_000, 3685427200),
        (100_000_000, 100_000_000),
        (0, 0),
        (255 * MIB, 255 * MIB),
        (255 * MIB + 1, 1),
        (2 * GIB - 1, 2 * GIB - 1 - 255 * MIB),
        (2 * GIB, 2 * GIB - 300 * MIB),
        (5000 * MIB, 4700 * MIB),  # where 6 % are as much as 300 MiB
        (100 * GIB, 94 * GIB),
    ],
)
def test_the_limit_leaves_some_to_the_system(free, limit):
    assert device_bytes_limit(free, 200 * GIB) == limit
    assert free - limit in {system_reserve(free), 0}


@pytest.mark.parametrize(("fraction", "limit"), [(0.5, 4 * GIB), (1.0, 8 * GIB), (0.0, 724 * MIB)])
def test_a_fraction_is_of_the_total(fraction, limit):
    assert device_bytes_limit(GIB - 45 * MIB, 8 * GIB, fraction=fraction) == limit


@pytest.mark.parametrize("options", [{"fraction": 1.5}, {"unified_memory": True}])
def test_unified_memory_is_refused_in_tensorflow_s_words(options):
    with pytest.raises(InternalError, match="Unified memory is not supported yet"):
        device_bytes_limit(GIB, GIB, **options)


@pytest.mark.parametrize("fraction", [-0.1, float("nan")])
def test_an_impossible_fraction_is_refused(fraction):
    with pytest.raises(InvalidArgumentError, match="fraction"):
        device_bytes_limit(GIB, GIB, fraction=fraction)


@pytest.mark.parametrize(("free", "total"), [(-1, GIB), (GIB, -1)])
def test_an_impossible_usage_is_the_plugin_s_fault(free, total):
    with pytest.raises(InternalError, match="device_memory_usage reported"):
        device_bytes_limit(free, total)


@pytest.mark.parametrize(
    ("configured", "variable", "forced", "growth"),
    [
        (False, None, False, False),
        (True, None, False, True),
        (False, "true", False, True),
        (True, "false", False, False),
        (True, "", False, True),
        (True, "False", False, True),  # neither of the two words: the configuration counts
        (False, "1", False, False),
        (False, "false", True, True),
        (True, "false", True, True),
    ],
)
def test_growth_is_for_plugin_environment_and_configuration_to_say(
    configured, variable, forced, growth
):
    environment = {} if variable is None else {"TF_FORCE_GPU_ALLOW_GROWTH": variable}

    assert memory_growth(configured, environment, forced_by_plugin=forced) is growth


@pytest.mark.parametrize(
    ("text", "on"),
    [(None, True), ("", True), ("true", True), ("1", True), ("True", True), ("maybe", True),
     ("false", False), ("0", False), ("FALSE", False)],
)  # fmt: skip
def test_garbage_is_collected_unless_the_environment_says_no(text, on):
    environment = {} if text is None else {"TF_ENABLE_GPU_GARBAGE_COLLECTION": text}

    assert garbage_collection(environment) is on


@pytest.mark.parametrize(
    ("text", "limit"),
    [(None, 128 * GIB), ("", 128 * GIB), ("64", 64 * MIB), ("0", 0), ("-5", 128 * GIB),
     ("1.5", 128 * GIB), ("many", 128 * GIB), ("²", 128 * GIB), ("9" * 30, 128 * GIB),
     ("1" * 5000, 128 * GIB)],
    ids=str,
)  # fmt: skip
def test_the_host_limit_is_in_mebibytes(text, limit):
    environment = {} if text is None else {"TF_GPU_HOST_MEM_LIMIT_IN_MB": text}

    assert host_bytes_limit(environment) == limit


@pytest.mark.parametrize(
    ("read", "variable", "text"),
    [
        (garbage_collection, "TF_ENABLE_GPU_GARBAGE_COLLECTION", "perhaps"),
        (host_bytes_limit, "TF_GPU_HOST_MEM_LIMIT_IN_MB", "lots"),
        (lambda environment: memory_growth(False, environment), "TF_FORCE_GPU_ALLOW_GROWTH", "on"),
    ],
)
def test_what_cannot_be_read_is_logged(caplog, read, variable, text):
    with caplog.at_level(logging.WARNING, "modular_tf.device"):
        read({variable: text})

    assert variable in caplog.text
    assert text in caplog.text


def test_forced_growth_is_logged(caplog):
    with caplog.at_level(logging.WARNING, "modular_tf.device"):
        memory_growth(False, {}, forced_by_plugin=True)

    assert "memory_growth.forced" in caplog.text
