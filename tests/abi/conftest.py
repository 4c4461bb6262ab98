"""Compile snippets against the public headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import modular_tf

INCLUDE = Path(modular_tf.__file__).parent / "include"
COMPILERS = {"c": ["cc", "-std=c11"], "c++": ["c++", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


@pytest.fixture(params=sorted(COMPILERS))
def language(request):
    return request.param


@pytest.fixture
def compile_object(tmp_path):
    """Return a function that compiles source text to an object file, warnings being errors."""

    def compile_(source, language, *options):
        target = tmp_path / "unit.o"
        command = [*COMPILERS[language], *WARNINGS, *options, f"-I{INCLUDE}"]
        command += ["-x", language, "-c", "-", "-o", str(target)]
        source += "\nextern int unit;\n"
        done = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return target

    return compile_
