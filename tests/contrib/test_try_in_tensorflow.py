"""contrib/try_in_tensorflow: it knows the plugins that there are, and their options.

What it does needs a TensorFlow, which the tests do not have.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

CONTRIB = Path(__file__).parents[2] / "contrib"
SCRIPT = CONTRIB / "try_in_tensorflow"
_CACHED = re.compile(r"set\((MTF_\w+) ")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module; importing it runs nothing."""
    loader = SourceFileLoader("try_in_tensorflow", str(SCRIPT))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = bytecode
    return module


def test_every_reference_plugin_is_tried(script: ModuleType) -> None:
    assert set(script.BUILDS) == {path.parent.name for path in CONTRIB.glob("*/CMakeLists.txt")}


def test_its_options_exist(script: ModuleType) -> None:
    """CMake takes an option that nobody reads without an error."""
    for name, options in script.BUILDS.items():
        known = _CACHED.findall((CONTRIB / name / "CMakeLists.txt").read_text(encoding="utf-8"))
        given = {option.removeprefix("-D").partition("=")[0] for option in options}
        assert given <= set(known)


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["a", "b"], 2)])
def test_usage(arguments: list[str], status: int) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert "Usage: contrib/try_in_tensorflow PYTHON" in done.stdout
