"""`scripts/mutants` with a package of three functions: one is tested well, one badly, one not."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "mutants"
_PACKAGE = """\
def is_small(number):
    return number < 10


def is_large(number):
    return number >= 100


def is_strange(number):
    return number == 7
"""
_TESTS = """\
from planted.sizes import is_large, is_small


def test_sizes():
    assert is_small(9)
    assert not is_small(10)


def test_large_is_not_tried_at_the_bound():
    assert is_large(5000)
    assert not is_large(5)
"""
_KILLED = {"is_small: comparison", "is_small: constant", "is_small: return value"}
_SURVIVED = {"is_large: comparison", "is_large: constant"}


def _write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text), encoding="utf-8")


@pytest.fixture
def mutants(tmp_path, run_python):
    _write(tmp_path / "installed/planted/__init__.py", "")
    _write(tmp_path / "installed/planted/sizes.py", _PACKAGE)
    _write(tmp_path / "pyproject.toml", "[tool.pytest.ini_options]\n")
    _write(tmp_path / "tests/test_sizes.py", _TESTS)
    _write(tmp_path / "equivalent.toml", "mutant = []\n")

    def run(*options, status=1):
        child = run_python(
            _SCRIPT,
            *("--package", tmp_path / "installed/planted", "--rooms", "planted"),
            *("--checkout", tmp_path, "--tests", "tests", "--folder", tmp_path / "results"),
            *("--equivalent", tmp_path / "equivalent.toml", *options),
            status=status,
        )
        return child.stdout

    return run


def _with_outcome(output, outcome):
    return set(re.findall(rf"^{outcome}: \w+ \S+ (\w+: [a-z ]+):", output, re.MULTILINE))


def test_what_tests_notice_is_separated_from_what_they_do_not(mutants, tmp_path):
    drawn = [mutants("--list", "--count", "4", "--seed", seed, status=0) for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]

    output = mutants()
    assert _with_outcome(output, "killed") == _KILLED | {"is_large: return value"}
    assert _with_outcome(output, "survived") >= _SURVIVED
    assert "4 of 9 noticed, 44.4%" in output
    assert (tmp_path / "installed/planted/sizes.py").read_text(encoding="utf-8") == _PACKAGE

    # What was found out is kept; what stands in the list of equivalent ones does not count.
    of_others = r"^(\w+) .* is_strange: "
    ids = re.findall(of_others, mutants("--list", status=0), re.MULTILINE)
    rows = [f'[[mutant]]\nid = "{name}"\nreason = "for this test"\n' for name in ids]
    _write(tmp_path / "equivalent.toml", "\n".join(rows))
    again = mutants()
    assert _with_outcome(again, "killed|survived") == set()
    assert "3 equivalent" in again
    assert "4 of 6 noticed" in again

    _write(tmp_path / "tests/test_sizes.py", _TESTS + "    assert is_large(100)\n")
    assert _with_outcome(mutants("--again", status=0), "killed") == _SURVIVED
