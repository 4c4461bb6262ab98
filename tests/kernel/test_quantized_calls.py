"""Calls of quantized operations, one on the results of the other."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf.errors import InvalidArgumentError, NotFoundError

KERNELS = "quantized_kernels"

SCALED = {"mode": "SCALED", "round_mode": "HALF_TO_EVEN"}
ROUNDS = range(3)  # the first calls are not prepared ones


@pytest.fixture
def quantize(device):
    op = device.op("QuantizeV2")

    def call(values):
        bound = np.abs(values).max(keepdims=True)
        return op(values, -bound, bound, T="qint8", **SCALED)

    return call


def random(count):
    return np.random.default_rng(0).uniform(-1, 1, count).astype("float32")


def test_plain_integers_are_of_the_quantized_type_that_the_caller_names(device, quantize):
    values = random(6)
    quantized, low, high = quantize(values)
    plain = quantized.to_numpy()
    dequantize = device.op("Dequantize")
    for given in (plain, device.put(plain), quantized):
        for _ in ROUNDS:
            numbers = dequantize(given, low, high, T="qint8", mode="SCALED").to_numpy()
            np.testing.assert_allclose(numbers, values, atol=0.01)


def test_the_type_of_an_array_is_never_taken_from_a_call_before(device, quantize):
    quantized, low, high = quantize(random(6))
    plain = device.put(quantized.to_numpy())
    dequantize = device.op("Dequantize")
    for _ in ROUNDS:
        dequantize(quantized, low, high, mode="SCALED")
        with pytest.raises(InvalidArgumentError, match="int8, which is not one of"):
            dequantize(plain, low, high, mode="SCALED")


def test_a_quantized_array_is_not_taken_for_plain_integers(device, quantize):
    quantized, low, high = quantize(random(6))
    with pytest.raises(NotFoundError, match="T=DT_QINT8"):
        device.op("Relu")(quantized)
    with pytest.raises(InvalidArgumentError, match="expected to be a float tensor but is a qint8"):
        device.op("QuantizeV2")(quantized, low, high, T="qint8")


def test_copies_on_a_device_keep_the_type(device, quantize):
    for _ in ROUNDS:
        quantized, *_ = quantize(random(6))

    assert repr(quantized).startswith("<DeviceArray qint8 (6,) on CPU:0")
    assert (quantized.dtype, quantized.to_numpy().dtype) == ("int8", np.int8)
    for copied in (quantized.copy_to(device), device.put(quantized)):
        assert copied.data_type.name == "qint8"
    assert device.put(quantized.to_numpy()).data_type.name == "int8"
