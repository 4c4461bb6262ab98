"""The load run in small, and what it is there to find."""

from __future__ import annotations

import pytest

from tests.watching.load_run import LoadRun
from tests.watching.numbered import REPEATS, number_in

SEED = 20261121


def test_nothing_is_lost_or_torn_while_files_come_and_go(folder):
    run = LoadRun(folder, SEED, slots=4, readers=2)
    try:
        run.run(changes=20, seconds=2)
    finally:
        run.close()

    assert run.errors == []
    assert len(run.delays_s) == 20
    assert run.reads > 0


def test_parts_of_two_libraries_are_found():
    with pytest.raises(ValueError, match="several"):
        number_in(b"00000001" * (REPEATS - 1) + b"00000002")
    assert number_in(b"00000012" * REPEATS) == 12
