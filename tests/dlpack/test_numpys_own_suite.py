"""What numpy demands of DLPack, asked of us: its own tests, each exchange by way of our tensor."""

from __future__ import annotations

import re


def test_numpys_tests_pass_through_us(run_python):
    code = """
        import sys, pytest
        sys.exit(pytest.main(["-q", "-c", "/dev/null", "-p", "no:cacheprovider",
                              "-p", "tests.dlpack.numpy_through_us",
                              "--pyargs", "numpy._core.tests.test_dlpack"]))
    """

    passed = re.search(r"(\d+) passed", run_python(code, env={"PYTEST_ADDOPTS": ""}).stdout)
    assert passed is not None
    assert int(passed[1]) > 50
