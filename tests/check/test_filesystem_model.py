"""The reference model of a filesystem, held to the bundled plugins by fixed random walks."""

from __future__ import annotations

import ctypes
import random
from contextlib import contextmanager, suppress

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Deviation, Unsupported
from modular_tf.check.filesystem.model import (
    ANY,
    OK,
    ON_ONE_PATH,
    FilesystemModel,
    ModelWalk,
    level_matches,
)
from modular_tf.check.filesystem.operations import MOVES
from modular_tf.check.filesystem.refusals import is_refused
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from tests.contrib.built_plugin import installed_plugin

_STEPS = 700
_NAMES = ("a", "b", "c", "a*")
_PATTERNS = ("*", "a*", "?", "[^a]", "*/b", "a/*/c", r"a\*", "b", "c/[a-b]")


def _path(chance):
    return "/".join(chance.choice(_NAMES) for _ in range(chance.randint(1, 3)))


def _step(walk, chance):
    kind = chance.randrange(12)
    path = _path(chance)
    if kind < 2:
        walk.write(path, [chance.randbytes(chance.randrange(20))], append=kind == 1)
    elif kind < 4:
        walk.read(path, chance.randrange(10), chance.randrange(20))
    elif kind == 4:
        walk.map(path)
    elif kind == 5:
        walk.paths_exist([_path(chance) for _ in range(chance.randrange(4))])
    elif kind < 8:
        walk.do(chance.choice(MOVES), path, _path(chance))
    else:
        operation = chance.choice(ON_ONE_PATH)
        walk.do(operation, chance.choice(_PATTERNS) if "matching" in operation else path)


@contextmanager
def _walking(target):
    stage = FilesystemSession(target)
    try:
        with stage.workspace(all_checks()["FS-320"]) as ground:
            yield ModelWalk(ground)
    finally:
        stage.close()


def _target(plugin, scheme, reached, scratch):
    path = str(installed_plugin(plugin))
    return Target(path, "filesystem", reached, scheme=scheme, scratch=str(scratch))


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST], ids=lambda reached: reached.value)
@pytest.mark.parametrize(
    ("plugin", "scheme"), [("ram_filesystem", "ram"), ("posix_filesystem", "file")]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_walk_meets_what_the_model_says(plugin, scheme, reached, seed, tmp_path):
    done, chance = 0, random.Random(seed)
    with _walking(_target(plugin, scheme, reached, tmp_path)) as walk:
        for _ in range(_STEPS):
            with suppress(Unsupported):
                _step(walk, chance)
                done += 1

    assert done > _STEPS * 0.8
    assert list(walk.model.paths())


def test_what_differs_from_the_model_is_found(tmp_path):
    with _walking(_target("ram_filesystem", "ram", Pass.HOST, tmp_path)) as walk:
        walk.write("a", [b"abc"])
        walk.model.append("a", b"d").settle(Code.OK)

        with pytest.raises(Deviation, match="get_file_size"):
            walk.do("get_file_size", "a")
        with pytest.raises(Deviation, match="read"):
            walk.read("a", 0, 4)
        walk.model.create_dir("b").settle(Code.OK)
        with pytest.raises(Deviation, match="get_children"):
            walk.do("get_children", "")
        with pytest.raises(Deviation, match="paths_exist"):
            walk.paths_exist(["a", "b"])
        with pytest.raises(Deviation, match="rename_file"):
            walk.do("rename_file", "a", "b/c")


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
        ("F", "E", OK),
        ("X", "Y", _MISSING),
        ("F", "X/y", _MISSING),
        ("D", "X", _REFUSED),
        ("F/x", "Y", _REFUSED),
        ("E", "F/x", _REFUSED),
        ("F", "F", ANY),
        ("F", "D", OK | _REFUSED),
        ("X", "F/x", _REFUSED | _MISSING),
        ("D", "X/y", _REFUSED | _MISSING),
        ("D", "D", _REFUSED),
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


def test_a_set_that_nothing_ends_matches_nothing():
    assert not level_matches("[a", "[a")
    assert not level_matches("a[", "a[")
