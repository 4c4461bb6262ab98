"""A sample of every stress campaign; `scripts/stress` runs them whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.parts import PARTS

_SCRIPT = Path(__file__).parents[2] / "scripts" / "stress"
_SEED = 20261122


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda part: part.name)
def test_a_sample_finds_no_problem(part, run_python):
    child = run_python(_SCRIPT, part.name, "--rounds", str(part.sample), "--seed", str(_SEED))

    assert f"{part.name}: ok after " in child.stdout
