"""The table from status codes to errors is complete, and errors are what they say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from modular_tf import errors
from modular_tf.abi.status_codes import Code
from modular_tf.headers import include_directory

CLASSES = [
    value
    for name in errors.__all__
    if inspect.isclass(value := getattr(errors, name)) and issubclass(value, Exception)
]


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.OK])
def test_every_code_has_a_class_of_its_own(code):
    cls = errors.error_class(code)

    assert cls.default_code is code
    assert [other for other in Code if errors.error_class(other) is cls] in (
        [code],
        [Code.OK, code],  # OK is no error: a plugin that fails with it broke its contract
    )


def test_the_codes_are_those_of_the_header():
    header = Path(include_directory(), "modular_tf", "status.h").read_text(encoding="utf-8")
    pairs = re.findall(r"\bTF_([A-Z_]+) = (\d+)", header)

    assert {name: int(number) for name, number in pairs} == {code.name: code for code in Code}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_is_drawn_in_the_tree(cls):
    assert re.search(rf"\b{cls.__name__}\b", errors.__doc__)
    assert issubclass(cls, errors.ModularTFError)
