"""Kernels end the temporary variables of other kernels, which hand their values over."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from modular_tf.native import _core
from tests.fixtures.compiler import compile_object, link_program

_NATIVE = Path(__file__).parents[2] / "modular_tf" / "native"
_HEADERS = [_NATIVE / "host_runtime" / "kernels", _NATIVE / "host_runtime", _NATIVE / "core"]
_RUNTIME = Path(_core.__file__).parent / "lib" / "libmodular_tf_framework.so.2"
_PROGRAM = Path(__file__).with_name("temporary_variables.cc")
_CASES = re.findall(r'^    \{"(\w+)"', _PROGRAM.read_text(), re.MULTILINE)


@pytest.mark.parametrize("case", _CASES)
def test_a_temporary_variable(case):
    linked = [str(_RUNTIME), f"-Wl,-rpath,{_RUNTIME.parent}"]
    program = link_program("temporary_variables", [compile_object(_PROGRAM, (), _HEADERS)], linked)

    done = subprocess.run([program, case], timeout=60, check=False)

    assert done.returncode == 0
