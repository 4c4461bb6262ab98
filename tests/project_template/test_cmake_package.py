"""`find_package(modular_tf)`: the headers for C11 and C++17, wherever it is looked for."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

import modular_tf
from modular_tf.headers import cmake_directory
from tests.fixtures.process_group import run_in_group
from tests.project_template.building import TOOLS, configure_and_build

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES {languages})
find_package(modular_tf {version} CONFIG REQUIRED)
find_package(modular_tf CONFIG REQUIRED)
add_library(user OBJECT {sources})
target_link_libraries(user PRIVATE modular_tf::headers)
target_compile_options(user PRIVATE -Wall -Wextra -Wpedantic -Werror)
"""
SOURCES = {
    "C": ("user.c", '_Static_assert(__STDC_VERSION__ >= 201112L, "older than C11");\n'),
    "CXX": ("user.cc", "static_assert(__cplusplus >= 201703L);\n"),
}
VERSION = ".".join(modular_tf.__version__.split(".")[:2])
_HERE = f"-Dmodular_tf_DIR={cmake_directory()}"


@pytest.fixture
def project(tmp_path):
    def write(*languages, version=VERSION):
        headers = '#include "modular_tf/modular_tf.h"\n#include "modular_tf/dlpack.h"\n'
        for name, assertion in map(SOURCES.get, languages):
            (tmp_path / name).write_text(f"{headers}{assertion}")
        sources = " ".join(SOURCES[language][0] for language in languages)
        text = PROJECT.format(languages=" ".join(languages), sources=sources, version=version)
        (tmp_path / "CMakeLists.txt").write_text(text)
        return tmp_path

    return write


def test_builds_of_wheels_find_it_by_themselves_for_both_languages(project):
    """scikit-build-core makes a prefix of each directory of what the entry point names."""
    (found,) = entry_points(group="cmake.prefix", name="modular_tf")
    prefixes = ";".join(found.load().__path__)

    build = configure_and_build(project(*SOURCES), [f"-DCMAKE_PREFIX_PATH={prefixes}"])
    cache = (build / "CMakeCache.txt").read_text()
    assert f"modular_tf_DIR:PATH={cmake_directory()}\n" in cache


def test_a_newer_one_is_asked_for_in_vain(project):
    source = project("C", version="99.0")
    command = ["cmake", "-S", source, "-B", source / "build", _HERE]
    done = run_in_group(command, cwd=source, env=TOOLS, timeout=100)

    assert done.returncode != 0
    assert "99.0" in done.stderr
    assert f"version: {modular_tf.__version__}" in done.stderr
    text = Path(cmake_directory(), "modular_tf-config-version.cmake").read_text()
    assert f'set(PACKAGE_VERSION "{modular_tf.__version__}")' in text
