"""A sample of operations on trees that chance chooses; `scripts/try_trees` does more of them."""

import pytest

from tests.trees.operations import find_fault
from tests.trees.stores import NAMES
from tests.trees.test_tree_rules import store_parameter


@pytest.mark.parametrize("name", [store_parameter(name) for name in NAMES])
def test_nothing_is_lost_and_nothing_is_left_out_in_silence(stores, name):
    fault = find_fault(stores, name, seed=SEED, operations=15)

    assert fault is None, str(fault)


SEED = 0
