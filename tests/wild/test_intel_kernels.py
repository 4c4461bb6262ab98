"""Intel's kernels for processors load from the wheel that the index has, and work in our host."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

KERNELS, OPS, DEFINITIONS = 1262, 263, 311
ALSO_STANDARD = 1  # a definition of an operation that TensorFlow defines as well
OPERATIONS = Path(__file__).with_name("intel_operations.py")

_LOAD = """
    import json, os, sys
    from modular_tf.native.library import Library
    from modular_tf.service.service import PluginService

    with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
        (before,) = service.load().plugins
        kernels = service.kernels()
        own = [each for each in service.op_definitions() if each.source == before.name]
        (after,) = service.plugins()
        matmul = {str(k.constraints["T"]) for k in service.kernels("_ITEXMatMul")}
        print(json.dumps({
            "state": after.state.value,
            "reasons": [reason.rule for reason in after.reasons],
            "promised": [before.kernels, before.ops],
            "found": [len(kernels), len({each.op for each in kernels}), len(own)],
            "device_types": sorted({each.device_type for each in kernels}),
            "matmul": sorted(matmul),
            "names TensorFlow": Library.find("_pywrap_tensorflow_internal.so") is not None,
        }))
"""


def test_they_are_registered_with_their_operations_and_again_by_what_is_remembered(
    run_python, intel_kernels
):
    found, again = (
        json.loads(run_python(_LOAD, intel_kernels).stdout.splitlines()[-1]) for _ in range(2)
    )

    assert again == found
    assert (found["state"], found["reasons"]) == ("loaded", [])
    assert found["promised"] == [KERNELS, DEFINITIONS]
    assert found["found"] == [KERNELS, OPS, DEFINITIONS - ALSO_STANDARD]
    assert found["device_types"] == ["CPU"]
    assert {"float", "bfloat16"} <= set(found["matmul"])
    assert not found["names TensorFlow"], "what needs TensorFlow later would get the host"


def test_operations_agree_with_numpy(run_python, intel_kernels):
    assert run_python(OPERATIONS, intel_kernels).stdout.endswith("\ncompared\n")


_PRELUDE = dedent("""
    import sys
    from concurrent.futures import ThreadPoolExecutor
    import numpy as np
    from modular_tf.errors import ModularTFError
    from modular_tf.service.service import PluginService

    service = PluginService()
    service.load("host_device", sys.argv[1])
    device = service.device("CPU:0")
    generator = np.random.default_rng(0)

    def floats(*shape):
        return generator.uniform(-1, 1, shape).astype("float32")

    def error_of(call):
        try:
            call()
        except ModularTFError as error:
            return str(error)
        raise AssertionError("no error")

    def product_is_right():
        a, b = floats(5, 7), floats(7, 3)
        return np.allclose(device.op("MatMul")(a, b).to_numpy(), a @ b, atol=1e-5)
""")


@pytest.fixture
def run_intel(run_python, intel_kernels):
    """Run a program with Intel's kernels; `device` is there."""

    def run(program):
        env = {"ITEX_CPP_MIN_LOG_LEVEL": "3"}
        return run_python(_PRELUDE + dedent(program), intel_kernels, env=env, timeout=300).stdout

    return run


def test_errors_are_typed_and_spoil_no_later_call(run_intel):
    run_intel(
        """
        image, weights = floats(1, 8, 8, 3), floats(3, 3, 3, 4)
        wrong = (
            ("MatMul", (floats(2, 3), floats(2, 3)), {}, "MatMul"),
            ("MatMul", (floats(2), floats(2, 3)), {}, "MatMul"),
            ("MatMul", (floats(2, 3),), {}, "MatMul"),
            ("MatMul", (floats(2, 3), floats(3, 2)), {"transpose_a": "yes"}, "MatMul"),
            ("Conv2D", (image, weights), {"strides": [1, 1, 1, 1]}, "Conv2D"),
            ("AddN", ([floats(2), floats(3)],), {}, "AddN"),
            ("_ITEXNoSuchOp", (), {}, "_ITEXNoSuchOp"),
        )
        for op, inputs, attrs, words in wrong:
            assert words in error_of(lambda: device.op(op)(*inputs, **attrs)), op
            assert product_is_right(), op

        for rows, depth, columns in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
            found = device.op("MatMul")(floats(rows, depth), floats(depth, columns)).to_numpy()
            assert found.shape == (rows, columns)
            assert not found.any(), "a sum of nothing is 0"
        """
    )


@pytest.mark.parametrize("way", ["closed", "open"])
def test_the_process_ends_cleanly(run_intel, way):
    output = run_intel(f"""
        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(lambda _: product_is_right(), range(8)))
        print("done", flush=True)
        if {way!r} == "closed":
            service.close()
    """)
    assert output.splitlines()[-1] == "done"
