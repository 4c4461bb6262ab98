"""`scripts/fuzz`, as somebody calls it who has a seed and an index."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz"


def test_a_campaign_reports_its_seed_and_the_kinds_of_answers(run_python):
    first, last = run_python(_SCRIPT, "uri", "--seed", "4", "--count", "300").stdout.splitlines()
    assert first == "uri: seed 4, inputs 0 to 299"
    assert last.startswith("300/300, ")
    assert "path " in last
