"""`scripts/fuzz`, as somebody calls it who has a seed and an index."""

from __future__ import annotations

from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz"


def test_a_campaign_reports_its_seed_and_the_kinds_of_answers(run_python):
    first, last = run_python(_SCRIPT, "uri", "--seed", "4", "--count", "300").stdout.splitlines()
    assert first == "uri: seed 4, inputs 0 to 299"
    assert last.startswith("300/300, ")
    assert "path " in last

    drawn = [run_python(_SCRIPT, "uri", "--count", "1").stdout.split(",")[0] for _ in range(2)]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("arguments", [("nothing",), ()])
def test_a_target_has_to_be_one(arguments, run_python):
    child = run_python(_SCRIPT, *arguments, status=2)

    assert "config" in child.stderr or "target" in child.stderr
