"""Compile snippets against the public headers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import modular_tf

if TYPE_CHECKING:
    from collections.abc import Callable

INCLUDE = Path(modular_tf.__file__).parent / "include"
COMPILERS = {"c": ["cc", "-std=c11"], "c++": ["c++", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


@pytest.fixture(params=sorted(COMPILERS))
def language(request: pytest.FixtureRequest) -> str:
    """Return each language that the headers support."""
    return request.param


@pytest.fixture
def compile_object(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that compiles source text to an object file, warnings being errors."""

    def compile_(source: str, language: str, *options: str) -> Path:
        target = tmp_path / "unit.o"
        command = [*COMPILERS[language], *WARNINGS, *options, f"-I{INCLUDE}"]
        done = subprocess.run(
            [*command, "-x", language, "-c", "-", "-o", str(target)],
            input=source,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return target

    return compile_
