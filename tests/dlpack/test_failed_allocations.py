"""What is left behind where there is no memory: nothing."""

from __future__ import annotations

import pytest

from modular_tf.native.tensor import Tensor, repacked
from tests.dlpack.memory import CPU, FLOAT32, Memory

USES = """
    import _testcapi  # of the interpreter; some distributions have it in a package of its tests
    from modular_tf.native.tensor import Tensor, consume, import_by_table, repacked
    from tests.dlpack.foreign import Producer
    from tests.dlpack.memory import tensor_of

    tensor = tensor_of([1, 2, 3])
    backwards = Tensor(tensor.address + 8, (3,), (-1,), (2, 32, 1), (1, 0), tensor.owner)
    uses = [
        lambda: tensor.__dlpack__(max_version=(1, 0)),
        lambda: tensor.__dlpack__(),
        lambda: consume(tensor.__dlpack__()),
        lambda: consume(tensor.__dlpack__(copy=True, max_version=(1, 0))),
        lambda: import_by_table(tensor),
        lambda: import_by_table(backwards),
        lambda: memoryview(tensor),
        lambda: repacked(tensor, True),
        lambda: (tensor.shape, tensor.strides, tensor.dlpack_device, tensor.dlpack_dtype),
        lambda: Tensor(tensor.address, (1,) * 9, None, (2, 32, 1), (1, 0), tensor),
    ]

    def fails(use, number):
        _testcapi.set_nomemory(number, number + 1)
        try:
            use()
        except MemoryError:
            return True
        finally:
            _testcapi.remove_mem_hooks()
        return False

    for use in uses:
        print(any([fails(use, number) for number in range(30)]),
              tensor._n_exports, backwards._n_exports)
    for number in range(30):
        for is_versioned in (True, False):
            producer = Producer(versioned=is_versioned)
            taken = [None]
            if fails(lambda: taken.__setitem__(0, consume(producer.capsule)), number):
                taken[0] = consume(producer.capsule)
            taken.clear()  # now that the deleter, which is in Python, has memory again
            assert producer.deleted == 1
"""


def test_failed_exports_and_imports_count_nothing_and_leave_a_capsule(run_python):
    assert set(run_python(USES).stdout.splitlines()) == {"True 0 0"}


@pytest.mark.parametrize(
    "copy", [lambda tensor: tensor.__dlpack__(copy=True), lambda tensor: repacked(tensor, True)]
)
def test_copies_that_are_too_large_count_nothing(copy):
    memory = Memory(4)
    large = Tensor(memory.address, (1 << 40, 1 << 20), (0, 0), FLOAT32, CPU, memory)

    with pytest.raises(MemoryError):
        copy(large)
    assert large._n_exports == 0
