"""New projects, built once per content as their authors would: with CMake, Ninja and our package.

Every warning that a careful author could ask the compiler for is an error.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from pathlib import Path

import pytest

from modular_tf.check.project_template.project import render_project, write_project
from modular_tf.headers import cmake_directory, include_directory
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT, cached_folder
from tests.fixtures.process_group import run_in_group

WARNINGS = "-Werror -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor"
TOOLS = {
    **DEVELOPER_ENVIRONMENT,
    # cmake and ninja are installed beside this Python, if not everywhere.
    "PATH": os.pathsep.join((str(Path(sys.executable).parent), DEVELOPER_ENVIRONMENT["PATH"])),
}


def built_library(names):
    folder = cached_folder(f"new-projects/{_content(names)}", lambda made: _build(names, made))
    return folder / f"lib{names.library}.so"


def run_tool(*command, cwd, env=TOOLS, timeout=200):
    """Return what a tool wrote, which must not fail."""
    done = run_in_group([str(word) for word in command], cwd=cwd, env=env, timeout=timeout)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def configure_and_build(source, options=()):
    """Return the folder in which a project was built."""
    run_tool("cmake", "-S", source, "-B", source / "build", "-G", "Ninja", *options, cwd=source)
    run_tool("cmake", "--build", source / "build", "--parallel", "2", cwd=source)
    return source / "build"


def made_environment(folder):
    """Make an environment that has what this one has, and return its folder for packages."""
    run_tool(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    bases = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", vars=bases))
    shared = sysconfig.get_path("purelib")
    (site / "shared.pth").write_text(f"import site; site.addsitedir({shared!r})\n")
    return site


def _build(names, folder):
    project = folder / "project"
    write_project(names, str(project))
    options = (f"-Dmodular_tf_DIR={cmake_directory()}", f"-DCMAKE_CXX_FLAGS={WARNINGS}")
    try:
        build = configure_and_build(project, options)
    except FileNotFoundError as error:
        pytest.fail(f"these tests need cmake, ninja and a C++ compiler: {error}", pytrace=False)
    (build / f"lib{names.library}.so").rename(folder / f"lib{names.library}.so")


def _content(names):
    total = hashlib.sha256(WARNINGS.encode())
    headers = sorted(Path(include_directory()).rglob("*.h"))
    for content in (*render_project(names).values(), *(path.read_text() for path in headers)):
        total.update(content.encode())
    return total.hexdigest()[:24]
