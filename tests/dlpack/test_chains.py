"""Tensors of tensors of tensors: what comes back again and again, and what keeps one another."""

from __future__ import annotations

import pytest

from tests.dlpack.exchange import IMPORTS
from tests.dlpack.memory import tensor_of


@pytest.mark.parametrize("import_", IMPORTS.values(), ids=IMPORTS)
def test_a_tensor_that_comes_back_again_and_again_keeps_the_first_one(import_):
    first = tensor_of([1, 2])
    memory = first.owner.watch()
    tensor = first
    for _ in range(3):
        tensor = import_(tensor)

    assert tensor.owner is first
    assert tensor.address == first.address
    assert first._n_exports == 1
    del first
    assert memory() is not None
    del tensor
    assert memory() is None


LONG_CHAINS = """
    import threading, weakref
    import numpy
    from modular_tf.dlpack import Tensor, consume, from_dlpack

    def over(made, address):
        return Tensor(address, (4,), None, (2, 32, 1), (1, 0), made)

    chains = {
        "own": from_dlpack,
        "capsules": lambda made: consume(made.__dlpack__()),
        "owners": lambda made: over(made, made.address),
        "buffers": lambda made: over(memoryview(made), made.address),
        "numpy": lambda made: numpy.from_dlpack(from_dlpack(made)),
    }

    def run(name, step):
        array, freed = numpy.zeros(4, "f4"), []
        weakref.finalize(array, freed.append, name)
        made = from_dlpack(array)
        for _ in range(10_000):
            made = step(made)
        del array
        assert not freed
        del made
        print(*freed, flush=True)

    threading.stack_size(256 << 10)
    for chain in chains.items():
        thread = threading.Thread(target=run, args=chain)
        thread.start()
        thread.join()
"""


def test_the_end_of_a_long_chain_needs_little_stack(run_forked):
    assert run_forked(LONG_CHAINS).stdout.split() == [
        "own", "capsules", "owners", "buffers", "numpy",
    ]  # fmt: skip
