"""Intel's kernels in long use: errors, threads, memory, and the end of the process."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.fixtures.memory_in_use import COUNTED

_PRELUDE = dedent("""
    import gc, os, sys
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    import ml_dtypes, numpy as np
    from modular_tf.errors import ModularTFError
    from modular_tf.native.ffi import lib
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
            return error
        raise AssertionError("no error")

    def product_is_right():
        a, b = floats(5, 7), floats(7, 3)
        return np.allclose(device.op("MatMul")(a, b).to_numpy(), a @ b, atol=1e-5)
""")


@pytest.fixture
def run_intel(run_python, intel_kernels):
    """Run programs with Intel's kernels, one after the other; `device` is there."""

    def run(*programs, **env):
        env["ITEX_CPP_MIN_LOG_LEVEL"] = "3"
        code = "\n".join(map(dedent, (_PRELUDE, *programs)))
        return run_python(code, intel_kernels, env=env, timeout=300).stdout

    return run


_CALLS_THAT_DO_NOT_FIT = """
        conv = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        image, weights = floats(1, 8, 8, 3), floats(3, 3, 3, 4)
        pool = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        wrong = (
            ("MatMul", (floats(2, 3), floats(2, 3)), {}),
            ("MatMul", (floats(2), floats(2, 3)), {}),
            ("MatMul", (floats(2, 3), floats(3, 2).astype("float64")), {}),
            ("MatMul", (floats(2, 3),), {}),
            ("MatMul", (floats(2, 3), floats(3, 2)), {"transpose_c": True}),
            ("MatMul", (floats(2, 3), floats(3, 2)), {"transpose_a": "yes"}),
            ("BatchMatMulV2", (floats(2, 3, 4), floats(3, 4, 5)), {}),
            ("Conv2D", (image, floats(3, 3, 5, 4)), conv),
            ("Conv2D", (image, weights), {"strides": [1, 1, 1, 1]}),
            ("Conv2D", (image, weights), conv | {"padding": "ROUND"}),
            ("AvgPool", (floats(8, 8),), pool),
            ("Transpose", (image, np.array([0, 1], "int32")), {}),
            ("Slice", (image, np.array([9, 0, 0, 0]), np.array([1, 1, 1, 1])), {}),
            ("AddN", ([floats(2), floats(3)],), {}),
            ("Einsum", ([floats(2, 3), floats(2, 3)],), {"equation": "ij,jk->ik"}),
            ("NoSuchOp", (), {}),
            ("_ITEXNoSuchOp", (), {}),
            ("Relu", (image,), {}),
        )
        for op, inputs, attrs in wrong:
            error = error_of(lambda: device.op(op)(*inputs, **attrs))
            assert op in str(error), error
            assert product_is_right(), op
"""
_INPUTS_WITHOUT_ELEMENTS = """
        for empty in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
            rows, depth, columns = empty
            found = device.op("MatMul")(floats(rows, depth), floats(depth, columns)).to_numpy()
            assert found.shape == (rows, columns)
            assert not found.any(), "a sum of nothing is 0"
            assert product_is_right(), empty
"""
_TYPES_THAT_THE_PROCESSOR_LACKS = """
        flags = Path("/proc/cpuinfo").read_text().split()
        for dtype, flag in ((ml_dtypes.bfloat16, "avx512bw"), (np.float16, "avx512_fp16")):
            a, b = floats(5, 7).astype(dtype), floats(7, 3).astype(dtype)
            if flag in flags:
                found = device.op("MatMul")(a, b).to_numpy().astype("float32")
                assert np.allclose(found, a.astype("float32") @ b.astype("float32"), atol=0.05)
            else:
                error = error_of(lambda: device.op("MatMul")(a, b))
                assert "could not create a primitive descriptor" in str(error), error
            assert product_is_right(), dtype
"""
_OUTPUTS_THAT_A_KERNEL_LEAVES_OUT = """
        x, ones, zeros = floats(2, 2, 2, 4), np.ones(4, "float32"), np.zeros(4, "float32")
        y, mean, variance = device.op("LayerNorm")(x, ones, zeros)
        error = error_of(lambda: device.op("LayerNormGrad")(y, x, ones, mean, variance))
        assert "Missing 3-th output" in str(error), error
        assert product_is_right()
"""
_THREADS_ON_ONE_KERNEL = """
        matmul = device.op("MatMul")
        conv = device.op("Conv2D")

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(60):
                rows, depth, columns = random.integers(1, 40, 3)
                a = random.uniform(-1, 1, (rows, depth)).astype("float32")
                b = random.uniform(-1, 1, (depth, columns)).astype("float32")
                assert np.allclose(matmul(a, b).to_numpy(), a @ b, atol=1e-4)
                x = random.uniform(-1, 1, (1, 6, 6, 3)).astype("float32")
                w = random.uniform(-1, 1, (1, 1, 3, 4)).astype("float32")
                found = conv(x, w, strides=[1, 1, 1, 1], padding="VALID").to_numpy()
                assert np.allclose(found, x @ w[0, 0], atol=1e-4)
            return seed

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(work, range(8))) == list(range(8))
"""
_RESULTS_OF_QUANTIZED_KERNELS = """
        quantize, dequantize = device.op("QuantizeV2"), device.op("Dequantize")
        image, weights = abs(floats(1, 4, 4, 3)), floats(1, 1, 3, 2)
        conv = device.op("QuantizedConv2D")
        for _ in range(3):  # the first calls are not prepared ones
            qi, *range_i = quantize(image, 0.0, 1.0, T="quint8", mode="SCALED")
            qw, *range_w = quantize(weights, -1.0, 1.0, T="qint8", mode="SCALED")
            restored = dequantize(qw, *range_w, mode="SCALED").to_numpy()
            assert np.allclose(restored, weights, atol=0.01)
            product, low, high = conv(
                qi, qw, *range_i, *range_w, strides=[1, 1, 1, 1], padding="SAME"
            )
            numbers = product.to_numpy() * (high.to_numpy() / 2**31)
            assert product.data_type.name == "qint32"
            assert np.allclose(numbers, np.einsum("bhwi,xyio->bhwo", image, weights), atol=0.05)

        a, b, bias = abs(floats(4, 5)), floats(5, 3), np.zeros(3, "int32")
        matmul = device.op("_ITEXQuantizedMatMulWithBiasAndDequantize")
        for _ in range(3):
            qa, *range_a = quantize(a, 0.0, 1.0, T="quint8", mode="SCALED")
            qb, *range_b = quantize(b, -1.0, 1.0, T="qint8", mode="SCALED")
            product = matmul(
                qa, qb, bias, *range_a, *range_b, -5.0, 5.0,
                Toutput="float32", Tbias="qint32", input_quant_mode="SCALED",
            )
            assert np.allclose(product.to_numpy(), a @ b, atol=0.05)
"""


def test_errors_are_typed_and_spoil_no_later_call(run_intel):
    run_intel(
        _CALLS_THAT_DO_NOT_FIT,
        _INPUTS_WITHOUT_ELEMENTS,
        _TYPES_THAT_THE_PROCESSOR_LACKS,
        _OUTPUTS_THAT_A_KERNEL_LEAVES_OUT,
    )


def test_results_go_into_other_kernels_and_threads_share_one(run_intel):
    run_intel(_RESULTS_OF_QUANTIZED_KERNELS, _THREADS_ON_ONE_KERNEL)


def test_many_calls_leave_memory_and_descriptors_as_they_were(run_intel):
    told = run_intel(
        """
        from tests.fixtures.memory_in_use import bytes_handed_out

        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        a, b = floats(32, 32), floats(32, 32)
        image, weights = floats(1, 8, 8, 3), floats(3, 3, 3, 4)
        at_device = device.put(a)
        matmul, conv, elu = (device.op(name) for name in ("MatMul", "Conv2D", "Elu"))
        fused, split = device.op("_ITEXFusedMatMul"), device.op("Slice")

        def calls(count):
            for _ in range(count):
                matmul(at_device, b)
                matmul(a, b, transpose_a=True)
                conv(image, weights, strides=[1, 1, 1, 1], padding="SAME")
                elu(at_device)
                fused(a, b, [b[0]], fused_ops=["BiasAdd", "Relu"])
                split(a, np.array([1, 2]), np.array([3, 4]))
                elu(floats(1 + int(generator.integers(40))))
                elu(device.put(a), donate=())
                matmul(floats(0, 4), floats(4, 3))
                try:
                    matmul(a, image)
                except ModularTFError:
                    pass

        calls(300)
        before = bytes_handed_out(), descriptors(), lib.mtf_kernel_tensor_handles()
        calls(1000)
        after = bytes_handed_out(), descriptors(), lib.mtf_kernel_tensor_handles()
        print(f"{(after[0] - before[0]) / 2**20:.2f} MiB")
        assert after[1:] == before[1:], (before, after)
        assert before[2] == 1, before  # a convolution keeps one temporary in its object
        service.close()
        gc.collect()
        assert lib.mtf_kernel_tensor_handles() == 0
        assert after[0] - before[0] < 4 * 2**20, (before, after)
    """,
        **COUNTED,
    )
    assert "MiB" in told


@pytest.mark.parametrize("way", ["closed", "open", "in a thread", "by sys.exit"])
def test_the_process_ends_cleanly(run_intel, way):
    told = run_intel(f"""
        way = {way!r}
        assert product_is_right()
        if way == "in a thread":
            with ThreadPoolExecutor(2) as threads:
                assert all(threads.map(lambda _: product_is_right(), range(8)))
        print("done", flush=True)
        if way == "closed":
            service.close()
        if way == "by sys.exit":
            sys.exit(0)
    """)
    assert told.splitlines()[-1] == "done"
