"""The reference kernels through operations, beside numpy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contrib.built_plugin import built_plugin
from tests.contrib.opencl_plugin import ON_POCL
from tests.fixtures.matrices import sampled
from tests.kernel import reference_cases

KERNELS = "host_kernels"

SOME, ALL = ("float64", "4"), ("float32,float64", "1")


@pytest.mark.parametrize(
    "case",
    [*reference_cases.OF_BOTH, *reference_cases.OF_THE_HOST],
    ids=lambda case: case.__name__,
)
def test_the_kernels_of_the_host_agree_with_numpy(device, case):
    case(device)


@pytest.mark.beyond_core  # which has no OpenCL
@pytest.mark.parametrize("extent", sampled([SOME, ALL], [SOME]), ids="{0[0]} {0[1]}".format)
def test_the_kernels_in_opencl_agree_with_numpy(run_python, extent):
    program = Path(reference_cases.__file__)
    libraries = built_plugin("opencl_device"), built_plugin("opencl_kernels")
    done = run_python(program, *extent, *libraries, env=ON_POCL, timeout=300)
    assert done.stdout == "all agree\n"
