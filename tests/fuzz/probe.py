"""Target: the probe of a candidate; whatever the bytes, it answers and never fails."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober
from tests.discovery.conftest import make_candidate
from tests.fuzz.elf_damage import bases, damaged


def make(dice):
    """Return a damaged library, mostly one for this machine."""
    chosen = dice.choice(bases() if dice.random() < 0.3 else _native())
    return damaged(chosen, dice)


def check(given):
    """Probe it as a plugin; the answer is complete and its rules are known."""
    path = _path()
    path.write_bytes(given)
    result = _prober().probe(make_candidate(path))
    errors = [problem for problem in result.problems if problem.is_error]
    assert result.loadable == (not errors)
    assert all(problem.rule.startswith("LD-") and problem.message for problem in result.problems)
    assert result.loadable <= bool(result.kinds), "loadable, and of no kind"
    return "loadable" if result.loadable else errors[0].rule


@cache
def _native():
    target = Path(sys.executable).read_bytes()[18:20]
    return tuple(base for base in bases() if base[18:20] == target)


@cache
def _prober():
    return Prober(host_exports(), environment={})


@cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="fuzzed-")


def _path():
    return Path(_folder().name) / f"libfuzzed-{os.getpid()}.so"
