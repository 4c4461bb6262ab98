"""The OpenCL device on PoCL when OpenCL fails, and what it owes OpenCL in the end.

A library that is preloaded stands in for OpenCL's functions; see opencl_ledger.c.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contrib.opencl_plugin import ON_POCL, TWO_DEVICES
from tests.fixtures.compiler import compile_object, link_library

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def ledger():
    """The library to preload."""
    made = compile_object(HERE / "opencl_ledger.c")
    return {"LD_PRELOAD": str(link_library("libopencl_ledger.so", [made], ["-ldl"]))}


def test_failures_are_reported_and_everything_taken_is_given_back(
    run_python, opencl_library, ledger, tmp_path
):
    file = tmp_path / "ledger"
    environment = {**TWO_DEVICES, **ledger, "OPENCL_LEDGER": str(file)}
    done = run_python(HERE / "opencl_failures.py", opencl_library, env=environment)

    counts = [line.split() for line in file.read_text().splitlines()]
    assert done.stdout == "survived\n"
    assert [kind for kind, taken, given in counts if taken != given] == []
    assert [kind for kind, taken, _ in counts if int(taken) > 0] == [
        "context", "queue", "buffer", "event", "shared", "mapping",
    ]  # fmt: skip


def test_events_that_fail_are_reported(run_python, opencl_library, ledger):
    environment = {**ON_POCL, **ledger}
    done = run_python(HERE / "opencl_failures.py", opencl_library, "events", env=environment)
    assert done.stdout == "survived\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"OCL_ICD_VENDORS": "/dev/null/none"},
        {**ON_POCL, "OPENCL_FAIL": "clGetDeviceInfo=-30"},  # asked for memory to share
    ],
    ids=["no driver", "a driver without shared memory"],
)
def test_without_a_driver_that_serves_there_are_no_devices(
    run_python, opencl_library, ledger, environment
):
    code = """
        import sys
        from tests.contrib.raw_plugins import raw_library

        platform = raw_library(sys.argv[1]).platform
        found, made = platform.device_count(), platform.create_device(0)
        print(found.code, found.value, platform.tables.platform.value("supports_unified_memory"))
        print(made.code, "found 0" in made.message)
    """
    done = run_python(code, opencl_library, env={**ledger, **environment})
    assert done.stdout == "0 0 0\n3 True\n"
