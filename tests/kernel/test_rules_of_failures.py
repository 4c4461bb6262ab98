"""A failed call tells the rule: of its own failure, and of what the host refused before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_SOURCE = Path(__file__).parent / "failing_kernels.cc"
_CALL = """
import array, sys
from modular_tf import ModularTFError, PluginService

with PluginService() as service:
    service.load(sys.argv[1], "host_device")
    try:
        service.device("CPU:0").op(sys.argv[2])(array.array("f", [1, 2]))
    except ModularTFError as error:
        print(error.code.name, error.rule, error.message)
"""


@pytest.mark.parametrize(
    ("op", "code", "rule", "cited"),
    [
        ("Neg", "UNIMPLEMENTED", "KN-060", "not on this machine"),
        ("Abs", "NOT_FOUND", "KN-087", "nothing to compute"),
        ("Square", "RESOURCE_EXHAUSTED", "KN-087", "(rule KN-078)"),
        ("Sign", "FAILED_PRECONDITION", "KN-087", "(rule KN-085)"),
        ("Exp", "INVALID_ARGUMENT", "KN-102", "variable"),
    ],
)
def test_the_error_tells_the_rule(
    op: str, code: str, rule: str, cited: str, run_python: PythonRunner
) -> None:
    plugin = link_library("libfailing.so", [compile_object(_SOURCE)], cxx=True)

    told = run_python(_CALL, plugin, op).stdout

    assert told.startswith(f"{code} {rule} ")
    assert cited in told
