"""Who keeps what alive, in every order of death; nothing is freed twice and nothing leaks."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from modular_tf.native.tensor import consume, import_by_table
from tests.dlpack.foreign import Producer
from tests.dlpack.memory import tensor_of
from tests.fixtures.memory_in_use import bytes_handed_out

LEGACY, VERSIONED = {}, {"max_version": (1, 0)}
BOTH = pytest.mark.parametrize("request_", [LEGACY, VERSIONED], ids=["legacy", "versioned"])
MIB = 1 << 20


@BOTH
def test_a_capsule_that_nobody_consumes_frees(request_):
    tensor = tensor_of([1])
    watched = tensor.owner.watch()
    capsule = tensor.__dlpack__(**request_)
    del tensor

    assert watched() is not None
    del capsule
    assert watched() is None


@BOTH
def test_an_exception_that_is_pending_survives_the_destructor(request_):
    """A capsule, and a tensor with a deleter in Python, go with the call that failed."""
    tensor, producer = tensor_of([1]), Producer()
    for give in (lambda: tensor.__dlpack__(**request_), lambda: consume(producer.capsule)):
        with pytest.raises(TypeError, match=r"has no len\(\)"):
            len(give())
    assert (tensor._n_exports, producer.deleted) == (0, 1)


def test_threads_export_and_free_at_once():
    tensor = tensor_of([1, 2])
    barrier = threading.Barrier(4)

    def work(_):
        barrier.wait(60)
        for _ in range(500):
            np.from_dlpack(tensor)
            consume(tensor.__dlpack__())
            import_by_table(tensor)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert tensor._n_exports == 0


def test_a_consumer_may_die_in_another_thread():
    tensor = tensor_of([1, 2])
    watched = tensor.owner.watch()
    taken = [np.from_dlpack(tensor) for _ in range(100)]
    del tensor

    thread = threading.Thread(target=taken.clear)
    thread.start()
    thread.join()
    assert watched() is None


def exchange(tensor):
    np.from_dlpack(tensor)
    tensor.__dlpack__()
    consume(tensor.__dlpack__(copy=True))
    import_by_table(tensor)
    memoryview(tensor)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))


def test_nothing_leaks():
    tensor = tensor_of([0] * 8192)
    for _ in range(100):
        exchange(tensor)
    before = bytes_handed_out()
    for _ in range(1000):  # 31 MiB of copies alone
        exchange(tensor)

    assert bytes_handed_out() - before < 8 * MIB
    assert tensor._n_exports == 0
