"""Tensors of tensors of tensors: what comes back again and again, and what keeps one another."""

from __future__ import annotations

import pytest

from modular_tf.dlpack import from_dlpack
from modular_tf.native.tensor import consume
from tests.dlpack.memory import tensor_of

IMPORTS = {
    "table": from_dlpack,
    "versioned": lambda tensor: consume(tensor.__dlpack__(max_version=(1, 0))),
    "legacy": lambda tensor: consume(tensor.__dlpack__()),
}


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


def test_another_name_of_pinned_memory_that_comes_back_keeps_the_first_one():
    pinned = tensor_of([1], dlpack_device=(3, 0))
    view = from_dlpack(pinned, device="cpu")
    again = from_dlpack(view)

    assert view.owner is again.owner is pinned
    assert pinned._n_exports == 2
    del view, again
    assert pinned._n_exports == 0


CHAINS = {
    "own": "made = from_dlpack(made)",
    "capsules": "made = consume(made.__dlpack__())",
    "owners": "made = Tensor(made.address, (4,), None, (2, 32, 1), (1, 0), made)",
    "buffers": "made = Tensor(array.ctypes.data, (4,), None, (2, 32, 1), (1, 0), memoryview(made))",
    "numpy": "made = numpy.from_dlpack(from_dlpack(made))",
}


@pytest.mark.parametrize("step", CHAINS.values(), ids=CHAINS)
def test_the_end_of_a_long_chain_needs_little_stack(run_python, step):
    code = f"""
        import threading, weakref
        import numpy
        from modular_tf.dlpack import Tensor, consume, from_dlpack

        freed = []

        def run():
            array = numpy.zeros(4, "f4")
            weakref.finalize(array, freed.append, True)
            made = from_dlpack(array)
            for _ in range(100_000):
                {step}
            del array
            print(freed)
            del made
            print(freed)

        threading.stack_size(256 << 10)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        """

    assert run_python(code).stdout == "[]\n[True]\n"
