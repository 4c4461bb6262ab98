"""Errors as Python has them: pickled, as between processes, and where their reason is gone."""

from __future__ import annotations

import pickle

from modular_tf import errors
from modular_tf.abi.status_codes import Code
from modular_tf.native.ffi import lib
from modular_tf.native.status import take_error


def test_every_class_travels():
    for code in set(Code) - {Code.OK}:
        error = errors.error_from_code(code, "text", plugin="p", path="/x", operation="stat")
        if code is Code.PERMISSION_DENIED:
            error.undeleted = (2, 1)
        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
        assert getattr(copy, "undeleted", None) == getattr(error, "undeleted", None)


def test_a_reason_that_is_gone_is_a_typed_error():
    """The native core stores an error for its thread, which asks for it once."""
    lib.mtf_error_free(lib.mtf_take_error())

    error = take_error(lib.mtf_take_error(), plugin="p", operation="create_event")

    assert type(error) is errors.InternalError
    assert (error.plugin, error.operation) == ("p", "create_event")
    assert "create_event: the native core failed" in str(error)
