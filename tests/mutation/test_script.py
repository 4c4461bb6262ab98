"""`scripts/mutants` with a package of few functions: one is tested badly, one not at all."""

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


def is_zero(number):
    return number == 0


def is_strange(number):
    return number == 7
"""
_TESTS = """\
import sys

from planted.sizes import is_large, is_small


def test_that_ends_all_tracing():
    sys.settrace(None)


def test_sizes():
    assert is_small(9)
    assert not is_small(10)


def test_large_is_not_tried_at_the_bound():
    assert is_large(5000)
    assert not is_large(5)
"""
_FORKED_TESTS = """\
import os
import subprocess
import sys

import pytest

_SERVER = '''
import os, sys
from planted.sizes import is_zero
while line := sys.stdin.readline():
    if not os.fork():
        os.environ["MUTANTS_TEST"], code = line.rstrip().split("|")
        exec(os.environ.get("EXECUTED_IN_FORKS", ""))
        exec(code)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
'''


@pytest.fixture(scope="module")
def run_forked():
    command = [sys.executable, "-c", _SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, **pipes) as server:
        def run(code):
            print(os.environ.get("MUTANTS_TEST", ""), code, sep="|", file=server.stdin)
            assert int(server.stdout.readline()) == 0
        yield run


def test_a_fork_that_looks_at_nothing(run_forked):
    run_forked("pass")


def test_zero_in_another_fork_of_the_same_process(run_forked):
    run_forked("assert is_zero(0) and not is_zero(1)")
"""
_KILLED = {
    f"{function}: {kind}"
    for function in ("is_small", "is_zero")
    for kind in ("comparison", "constant", "return value")
}
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
    _write(tmp_path / "tests/test_forked.py", _FORKED_TESTS)
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
    assert "7 of 12 noticed, 58.3%" in output
    assert (tmp_path / "installed/planted/sizes.py").read_text(encoding="utf-8") == _PACKAGE

    # What was found out is kept; what stands in the list of equivalent ones does not count.
    of_others = r"^(\w+) .* is_strange: "
    ids = re.findall(of_others, mutants("--list", status=0), re.MULTILINE)
    rows = [f'[[mutant]]\nid = "{name}"\nreason = "for this test"\n' for name in ids]
    _write(tmp_path / "equivalent.toml", "\n".join(rows))
    again = mutants()
    assert _with_outcome(again, "killed|survived") == set()
    assert "3 equivalent" in again
    assert "7 of 9 noticed" in again

    _write(tmp_path / "tests/test_sizes.py", _TESTS + "    assert is_large(100)\n")
    assert _with_outcome(mutants("--again", status=0), "killed") == _SURVIVED
