"""A sample of every stress campaign; `scripts/stress` runs them whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.growth import ALLOWED, growing
from tests.stress.parts import PARTS

_SCRIPT = Path(__file__).parents[2] / "scripts" / "stress"
_SEED = 20261122


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda part: part.name)
def test_a_sample_finds_no_problem(part, run_python):
    child = run_python(_SCRIPT, part.name, "--rounds", str(part.sample), "--seed", str(_SEED))

    assert f"{part.name}: ok after " in child.stdout


def test_what_goes_on_growing_is_found_and_a_warm_up_is_not():
    still = dict.fromkeys(ALLOWED, 100.0)
    for name in ALLOWED:
        assert [
            found.partition(" grew")[0]
            for found in growing([{**still, name: 100.0 + at} for at in range(150)])
        ] == [name]
    assert growing([dict.fromkeys(ALLOWED, 10.0)] * 25 + [still] * 125) == []
