"""The libraries of kernels: what they show, and what they register."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contrib.built_plugin import CHECKOUT, built_plugin
from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

COMMON = {"Add": 7, "AddV2": 10, "Cast": 121, "MatMul": 2, "Relu": 10}
KERNELS = {"host_kernels": {**COMMON, "Max": 20, "Sum": 20}, "opencl_kernels": COMMON}
DEVICE_TYPES = {"host_kernels": "CPU", "opencl_kernels": "OPENCL"}


@pytest.fixture(scope="session")
def registering_host() -> Path:
    """Return a library that has the functions for registration."""
    source = Path(__file__).parent / "registering_host.c"
    return link_library("libregistering_host.so", [compile_object(source)])


def _registered(run_python: PythonRunner, host: Path, library: Path) -> list[list[str]]:
    """Return what a library registers, in words."""
    code = """
        import ctypes, os, sys
        ctypes.CDLL(sys.argv[1], mode=os.RTLD_GLOBAL)
        ctypes.CDLL(sys.argv[2], mode=os.RTLD_LAZY).TF_InitKernel()
    """
    return [line.split() for line in run_python(code, host, library).stdout.splitlines()]


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_but_the_entry_point_is_visible(name: str) -> None:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", built_plugin(name)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["TF_InitKernel"]


@pytest.mark.parametrize("name", KERNELS)
def test_each_type_of_each_operation_is_registered_once(
    run_python: PythonRunner, registering_host: Path, name: str
) -> None:
    found = _registered(run_python, registering_host, built_plugin(name))
    assert Counter(words[0] for words in found) == KERNELS[name]
    assert {words[1] for words in found} == {DEVICE_TYPES[name]}
    assert len({tuple(words) for words in found}) == len(found)


def test_indices_of_reductions_are_in_host_memory(
    run_python: PythonRunner, registering_host: Path
) -> None:
    found = _registered(run_python, registering_host, built_plugin("host_kernels"))
    with_host_memory = [words for words in found if "host:reduction_indices" in words]
    assert {words[0] for words in with_host_memory} == {"Max", "Sum"}
    assert len(with_host_memory) == 40
    assert not [words for words in found if "incomplete" in words]


def test_kernels_for_another_device_type(
    run_python: PythonRunner, registering_host: Path, tmp_path: Path
) -> None:
    script = [CHECKOUT / "scripts" / "build_plugins", "--into", tmp_path, "host_kernels", "--"]
    subprocess.run(
        [*script, "-DMTF_HOST_KERNELS_DEVICE_TYPE=MTF_CPU"],
        env=dict(DEVELOPER_ENVIRONMENT),
        capture_output=True,
        check=True,
    )
    library = tmp_path / "host_kernels" / "libhost_kernels.so"
    found = _registered(run_python, registering_host, library)
    assert {words[1] for words in found} == {"MTF_CPU"}
