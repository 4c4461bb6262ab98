"""`scripts/fuzz`, as somebody calls it who has a seed and an index."""

from __future__ import annotations

from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz"


def test_a_campaign_tells_its_seed_and_the_kinds_of_answers(run_python):
    child = run_python(_SCRIPT, "uri", "--seed", "4", "--count", "300")

    first, last = child.stdout.splitlines()
    assert first == "uri: seed 4, inputs 0 to 299"
    assert last.startswith("300/300, ")
    assert "path " in last


def test_without_a_seed_one_is_drawn_and_told(run_python):
    seeds = {
        run_python(_SCRIPT, "uri", "--count", "1").stdout.split("seed ")[1].split(",")[0]
        for _ in range(2)
    }

    assert len(seeds) == 2


def test_one_input_is_shown_and_checked_again(run_python):
    one = run_python(_SCRIPT, "uri", "--replay", "4:17").stdout
    other = run_python(_SCRIPT, "uri", "--replay", "4:18").stdout

    assert "uri: seed 4, inputs 17 to 17" in one
    assert one.splitlines()[0] != other.splitlines()[0]


@pytest.mark.parametrize("arguments", [("nothing",), ()])
def test_a_target_has_to_be_one(arguments, run_python):
    child = run_python(_SCRIPT, *arguments, status=2)

    assert "scan_cache" in child.stderr or "target" in child.stderr
