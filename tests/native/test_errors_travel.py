"""Errors keep all that they say when they are pickled, as between processes."""

from __future__ import annotations

import pickle

import pytest

from modular_tf import errors
from modular_tf.abi.status_codes import Code


def test_what_could_not_be_deleted_travels():
    error = errors.PermissionDeniedError("no", path="/x", operation="delete_recursively")
    error.undeleted = (2, 1)

    copy = pickle.loads(pickle.dumps(error))

    assert (copy.undeleted, copy.path, copy.operation) == ((2, 1), "/x", "delete_recursively")


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.OK])
def test_every_class_travels(code):
    error = errors.error_from_code(code, "text", plugin="p", path="/x", operation="stat")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
