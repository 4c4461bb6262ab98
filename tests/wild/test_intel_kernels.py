"""Intel's kernels for processors load from the wheel that the index has, and agree with numpy.

The programs are in the folder `intel`; its `subject.py` states the tolerances. The elements are
float, and bfloat16 and half where the processor computes with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.matrices import BEYOND_THE_SAMPLE

KERNELS, OPS, DEFINITIONS = 1262, 263, 311
ALSO_STANDARD = 1  # a definition of an operation that TensorFlow defines as well
PROGRAMS = Path(__file__).with_name("intel")
COMPARED = {  # operations by module
    "activations": 20,
    "convolutions": 19,
    "data_movement": 8,
    "normalizations": 14,
    "pooling": 8,
    "products": 10,
}
# What the host passes in some way of its own: attributes of each type, lists of inputs, several
# outputs, none, numbers of all types.
SAMPLE = [
    "AddN", "AvgPool", "BatchMatMulV2", "Conv2D", "Conv2DBackpropFilter",
    "Conv2DBackpropInput", "Dequantize", "DepthwiseConv2dNativeBackpropFilter", "Einsum", "EluGrad",
    "FusedBatchNormV2 (inference)", "FusedBatchNormV3", "Gelu", "LayerNorm", "LeakyRelu", "MatMul",
    "QuantizeV2", "RandomUniform", "ResizeBilinear", "ScaledDotProductAttentionInference", "Slice",
    "Transpose", "_ITEXAccMatMul", "_ITEXFusedBatchMatMulV2", "_ITEXFusedConv2D",
    "_ITEXFusedMatMul", "_ITEXFusedMatMulGrad", "_ITEXFusedMatMulWithSum", "_ITEXMaxPoolGrad",
]  # fmt: skip

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


def compare(run_python, plugin, modules, ops=()):
    """Return how many operations were compared, and what was found wrong with them."""
    child = run_python(PROGRAMS, plugin, ",".join(modules), *ops, timeout=300)
    found = json.loads(child.stdout.splitlines()[-1])
    return len(found), [f"{op}: {failure}" for op, failure in found.items() if failure]


def test_operations_agree_with_numpy(run_python, intel_kernels):
    compared, failures = compare(run_python, intel_kernels, COMPARED, SAMPLE)

    assert not failures, "\n".join(failures)
    assert compared == 29


@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("module", COMPARED)
def test_all_operations_of_a_module_agree_with_numpy(run_python, intel_kernels, module):
    compared, failures = compare(run_python, intel_kernels, [module])

    assert not failures, "\n".join(failures)
    assert compared == COMPARED[module]
