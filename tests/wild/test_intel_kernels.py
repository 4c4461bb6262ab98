"""Intel's kernels for processors load from the wheel that the index has, without TensorFlow."""

from __future__ import annotations

import json

KERNELS, OPS, DEFINITIONS = 1262, 263, 311
ALSO_STANDARD = 1  # a definition of an operation that TensorFlow defines as well

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


def load(run_python, plugin):
    return json.loads(run_python(_LOAD, plugin, timeout=120).stdout.splitlines()[-1])


def test_they_are_registered_with_their_operations(run_python, intel_kernels):
    told = load(run_python, intel_kernels)

    assert (told["state"], told["reasons"]) == ("loaded", [])
    assert told["promised"] == [KERNELS, DEFINITIONS]
    assert told["found"] == [KERNELS, OPS, DEFINITIONS - ALSO_STANDARD]
    assert told["device_types"] == ["CPU"]
    assert {"float", "bfloat16"} <= set(told["matmul"])
    assert not told["names TensorFlow"], "what needs TensorFlow later would get the host"


def test_they_load_again_by_what_is_remembered(run_python, intel_kernels):
    assert load(run_python, intel_kernels) == load(run_python, intel_kernels)
