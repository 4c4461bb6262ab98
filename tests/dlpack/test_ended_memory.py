"""Memory that is ended: while it is exported, before, and after."""

from __future__ import annotations

import gc

import pytest

from modular_tf.dlpack import from_dlpack
from modular_tf.native.tensor import Tensor, consume
from tests.dlpack.exchange import IMPORTS, describe, managed_from
from tests.dlpack.memory import tensor_of


class Closable(Tensor):
    """Refuses nothing by itself."""

    def _before_export(self, stream):
        pass


EXPORTS = {
    **IMPORTS,
    "copy": lambda tensor: consume(tensor.__dlpack__(copy=True)),
    "buffer": memoryview,
    "managed tensor": managed_from,
    "description": describe,
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_memory_that_was_ended_is_not_exported(export):
    tensor = tensor_of([1, 2], cls=Closable)
    memory = tensor.owner.watch()
    tensor._end_memory()
    tensor._needs_sync = False

    assert memory() is None
    assert tensor.owner is None
    with pytest.raises(BufferError, match="given back"):
        export(tensor)
    tensor._end_memory()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_memory_that_is_ended_during_an_export_stays_until_the_export_has_ended(export):
    seen = []

    class EndedMeanwhile(Tensor):
        def _before_export(self, stream):
            self._end_memory()
            gc.collect()
            seen.append((self._n_exports > 0, memory() is not None))

    tensor = tensor_of([1, 2], cls=EndedMeanwhile)
    memory = tensor.owner.watch()
    tensor._needs_sync = True
    with pytest.raises(BufferError, match="given back"):
        export(tensor)

    assert seen == [(True, True)]
    assert (tensor._n_exports, memory()) == (0, None)


@pytest.mark.parametrize("export", IMPORTS.values(), ids=IMPORTS)
def test_views_keep_memory_that_was_ended(export):
    tensor = tensor_of([1, 2])
    memory = tensor.owner.watch()
    view = export(tensor)
    buffer = memoryview(tensor)
    tensor._end_memory()

    assert memoryview(view).tolist() == buffer.tolist() == [1, 2]
    assert memoryview(from_dlpack(view)).tolist() == [1, 2]
    buffer.release()
    assert memory() is not None
    del view
    assert memory() is None
