"""The package under test is an installed one, and whole; the sources have every tracked file."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import modular_tf

CHECKOUT = Path(__file__).parents[2]
INSTALLED = Path(modular_tf.__file__).parent


def test_every_file_that_is_used_at_run_time_is_installed():
    kinds = {".bin", ".cmake", ".h", ".in", ".py", ".pyi", ".toml"}
    sources = {
        path.relative_to(CHECKOUT / "modular_tf")
        for path in (CHECKOUT / "modular_tf").rglob("*")
        if path.suffix in kinds or path.name == "py.typed"
    }
    only_for_the_build = {
        path
        for path in sources
        if (path.suffix == ".h" and "native" in path.parts) or path.name == "build_core.py"
    }
    missing = {path for path in sources - only_for_the_build if not (INSTALLED / path).is_file()}

    assert missing == set()


def test_the_version_is_the_same_everywhere():
    build = (CHECKOUT / "CMakeLists.txt").read_text(encoding="utf-8")
    changelog = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    built = re.findall(r"^project\(modular_tf VERSION (\S+) ", build, re.MULTILINE)
    released = re.findall(r"^## (\d\S*)", changelog, re.MULTILINE)
    stated = {*built, released[0], distribution("modular_tf").version}

    assert stated == {modular_tf.__version__}
