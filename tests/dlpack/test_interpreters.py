"""The compiled module in interpreters that are not the first, or not new."""

from __future__ import annotations


def test_subinterpreters_are_refused(run_python):
    """Deleters take the GIL of the main interpreter, so that in another one they never return."""
    code = """
        import modular_tf.native.tensor
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        interpreters.run_string(other, '''if True:
            try:
                import modular_tf.native._dlpack
            except ImportError:
                print("refused", flush=True)
        ''')
        interpreters.destroy(other)
        print("ended")
    """

    assert run_python(code).stdout == "refused\nended\n"


def test_there_is_one_type_however_often_the_module_is_imported(run_python):
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

    assert run_python(code).stdout == "False True\nTrue 0\n"
