"""The compiled module in an interpreter that has imported it before."""

from __future__ import annotations


def test_there_is_one_type_however_often_the_module_is_imported(run_forked):
    code = """
        import importlib, sys
        from modular_tf.native._dlpack import Tensor, consume
        from tests.dlpack.memory import tensor_of
        tensor = tensor_of([1, 2])
        first = sys.modules.pop("modular_tf.native._dlpack")
        again = importlib.import_module("modular_tf.native._dlpack")
        print(again is first, again.Tensor is Tensor)
        print(type(again.consume(tensor.__dlpack__())) is Tensor, tensor._n_exports)
    """

    assert run_forked(code).stdout == "False True\nTrue 0\n"
