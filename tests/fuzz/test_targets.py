"""A small share of fuzzing in each run of the tests; `scripts/fuzz` does as much as is asked of it.

Another seed each day would find more, and would have a change fail that did nothing: the seed is
fixed here.
"""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.fixtures.machine import CACHE_ROOT
from tests.fuzz import campaign
from tests.fuzz.campaign import FuzzError, make_input, run
from tests.fuzz.target import TARGETS

_SEED = 4
_COUNT = {"elf": 200, "probe": 150, "uri": 1500, "config": 600, "record": 1500, "finding": 600}

# Kinds of answers without which a campaign would have fuzzed next to nothing.
_MUST_COME = {
    "elf": {"agreed", "LD-005"},
    "probe": {"loadable", "LD-005", "LD-008", "LD-010"},
    "uri": {"uri", "path", "no bytes"},
    "config": {"accepted", "wrong value", "unknown key", "no TOML"},
    "finding": {"clean", "refused", "not tried", "LD-060", "LD-062", "LD-066"},
    "record": {"quoted", "plain"},
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_share_of_each_campaign(target):
    assert _MUST_COME[target] <= run(target, _SEED, range(_COUNT[target])).keys()


_INPUTS = """
    import sys
    from tests.fuzz.campaign import make_input
    for target in sys.argv[1:]:
        print([make_input(target, 7, at) for at in (0, 3)])
"""


def test_seed_and_index_reproduce_an_input_in_any_process(run_python):
    cached = {"MODULAR_TF_TEST_CACHE": str(CACHE_ROOT)}  # nothing is built again
    lines = run_python(_INPUTS, *TARGETS, env=cached).stdout.splitlines()

    assert lines == [str([make_input(target, 7, at) for at in (0, 3)]) for target in TARGETS]


@pytest.fixture
def broken_target(monkeypatch):
    """A target that is wrong at 9 and hangs at 8."""

    def check(given):
        while given == 8:
            pass
        assert given != 9, "nine"
        return "fine"

    target = SimpleNamespace(make=lambda dice: dice.randrange(10), check=check)
    monkeypatch.setattr(campaign, "load_target", lambda name: target)


def _index_of(number):
    return next(at for at in range(1000) if random.Random(f"any:1:{at}").randrange(10) == number)


@pytest.mark.usefixtures("broken_target")
def test_wrong_answers_and_hangs_are_failures_and_others_are_counted(monkeypatch):
    monkeypatch.setattr(campaign, "LIMIT_S", 0.1)
    index, seen = _index_of(9), []

    with pytest.raises(FuzzError, match=rf"(?s)nine.*input: 9\n.*--replay 1:{index}") as failure:
        run("any", 1, [index])
    assert failure.value.given == 9
    with pytest.raises(FuzzError, match="HangError"):
        run("any", 1, [_index_of(8)])
    run("any", 1, [_index_of(0), _index_of(1)], lambda kinds: seen.append(Counter(kinds)))
    assert seen == [Counter(fine=1), Counter(fine=2)]
