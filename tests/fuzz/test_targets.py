"""A small share of fuzzing in each run of the tests; `scripts/fuzz` does as much as is asked of it.

Another seed each day would find more, and would have a change fail that did nothing: the seed is
fixed here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import TARGETS, make_input, run

_SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz"
_SEED = 4
_COUNT = {"probe": 300, "record": 1500}

# Kinds of answers without which a campaign would have fuzzed next to nothing.
_MUST_COME = {
    "probe": {"loadable", "LD-005", "LD-008", "LD-010"},
    "record": {"quoted", "plain"},
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_share_of_each_campaign(target):
    assert _MUST_COME[target] <= run(target, _SEED, range(_COUNT[target])).keys()


def test_the_script_makes_an_input_again_by_seed_and_index_and_counts_the_kinds(run_python):
    lines = run_python(_SCRIPT, "record", "--replay", "4:3").stdout.splitlines()

    assert lines[0] == repr(make_input("record", 4, 3))
    assert lines[1] == "record: seed 4, inputs 3 to 3"
    assert lines[2].startswith("1/1, ")
