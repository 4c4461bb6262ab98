"""The error that the native core keeps for its thread may be gone when it is asked for."""

from __future__ import annotations

from modular_tf.errors import InternalError
from modular_tf.native.ffi import lib
from modular_tf.native.status import take_error


def test_a_reason_that_is_gone_is_a_typed_error():
    lib.mtf_error_free(lib.mtf_take_error())

    error = take_error(lib.mtf_take_error(), plugin="p", operation="create_event")

    assert type(error) is InternalError
    assert (error.plugin, error.operation) == ("p", "create_event")
    assert "create_event: the native core failed" in str(error)
