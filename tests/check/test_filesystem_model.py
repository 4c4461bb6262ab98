"""The reference model of a filesystem; FS-320 holds plugins to it by random programs."""

from __future__ import annotations

import ctypes
import random

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.catalogue import all_checks
from modular_tf.check.filesystem.model import (
    ANY,
    OK,
    FilesystemModel,
    level_matches,
)
from modular_tf.check.filesystem.operations import MOVES
from modular_tf.check.filesystem.refusals import is_refused


def _model():
    model = FilesystemModel()
    for path in ("D", "N"):
        model.create_dir(path).settle(Code.OK)
    for path, content in (("F", b"abcd"), ("G", b"g"), ("E", b""), ("N/file", b"x")):
        model.new_writable_file(path).settle(Code.OK)
        model.append(path, content).settle(Code.OK)
    return model


_REFUSED, _MISSING = {Code.FAILED_PRECONDITION}, {Code.NOT_FOUND}


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("F", "X", OK),
        ("X", "Y", _MISSING),
        ("F", "X/y", _MISSING),
        ("D", "X", _REFUSED),
        ("F/x", "Y", _REFUSED),
        ("E", "F/x", _REFUSED),
        ("F", "F", ANY),
        ("F", "D", OK | _REFUSED),
        ("D", "X/y", _REFUSED | _MISSING),
        ("D", "D/x", _REFUSED),
    ],
)
@pytest.mark.parametrize("operation", MOVES)
def test_codes_of_operations_on_two_paths(operation, source, target, codes):
    assert getattr(_model(), operation)(source, target).codes == codes


def _refusals():
    runs = {check.id: check.run for check in all_checks().values()}
    return {
        check_id: run.args[0]
        for check_id, run in runs.items()
        if getattr(run, "func", None) is is_refused
    }


@pytest.mark.parametrize(("check_id", "row"), _refusals().items(), ids=_refusals())
def test_a_refusal_is_what_the_model_answers(check_id, row):
    for slot, paths in row.each:
        assert getattr(_model(), slot)(*paths).codes == {row.code}, check_id


def test_an_answer_that_is_not_ok_changes_nothing():
    model = _model()

    model.copy_file("F", "D").settle(Code.FAILED_PRECONDITION)
    assert "D/F" not in set(model.paths())
    model.copy_file("F", "D").settle(Code.OK)
    assert model.find("D/F") == model.find("F") == b"abcd"
    model.rename_file("F", "N").settle(Code.OK)
    assert (model.find("N/F"), model.find("F")) == (b"abcd", Code.NOT_FOUND)


_PIECES = ("a", "b", "*", "?", "[ab]", "[^a]", "[!b]", "[a-c]", "[]a]", "[^]]", r"\*", r"\[", "-")


def test_patterns_mean_what_they_mean_to_the_system():
    chance, fnmatch, both = random.Random(7), ctypes.CDLL(None).fnmatch, set()
    for _ in range(5000):
        pattern = "".join(chance.choices(_PIECES, k=chance.randrange(5)))
        name = "".join(chance.choices("abcd-]^*[", k=chance.randrange(5)))
        expected = fnmatch(pattern.encode(), name.encode(), 0) == 0
        both.add(expected)

        assert level_matches(pattern, name) == expected, (pattern, name)
    assert both == {True, False}
    # A set that nothing ends matches nothing.
    assert not level_matches("[a", "[a")
    assert not level_matches("a[", "a[")
