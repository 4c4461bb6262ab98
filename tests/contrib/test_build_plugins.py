"""scripts/build_plugins: each plugin builds on its own, with the options of its author."""

from __future__ import annotations

import re
import runpy
import subprocess

import pytest

from modular_tf import PluginService
from tests.contrib.built_plugin import CHECKOUT
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

CONTRIB = CHECKOUT / "contrib"
OPTIONS = (
    "-DMTF_POSIX_SCHEMES=disk",
    "-DMTF_RAM_SCHEME=ramfs",
    "-DMTF_HOST_DEVICE_TYPE=MTF_CPU",
    "-DMTF_HOST_KERNELS_DEVICE_TYPE=MTF_CPU",
    "-DCMAKE_BUILD_TYPE=Debug",  # which takes a fraction of the time
)
NAMES = ("posix_filesystem", "ram_filesystem", "host_device", "host_kernels")


def build(*arguments, **variables):
    return subprocess.run(
        [CHECKOUT / "scripts" / "build_plugins", *arguments],
        env={**DEVELOPER_ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_plugins_get_other_names(tmp_path):
    done = build("--into", tmp_path, *NAMES, "--", *OPTIONS)
    libraries = [str(tmp_path / name / f"lib{name}.so") for name in NAMES]
    assert (done.returncode, done.stdout.splitlines()) == (0, libraries), done.stderr

    with PluginService(bundled=False) as service:
        service.load(*libraries)
        plugins = {plugin.name: plugin for plugin in service.plugins()}
        kernels = service.kernels(plugin="host_kernels")
    assert plugins["posix_filesystem"].schemes == ("disk",)
    assert plugins["ram_filesystem"].schemes == ("ramfs",)
    assert plugins["host_device"].device_types == ("MTF_CPU",)
    assert {kernel.device_type for kernel in kernels} == {"MTF_CPU"}


@pytest.mark.parametrize(
    ("name", "option", "complaint"),
    [
        ("host_device", "-DMTF_HOST_DEVICE_TYPE=cpu0", "'cpu0' is no device name"),
        (
            "opencl_device",
            "-DCMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON",
            "opencl-headers ocl-icd-opencl-dev",
        ),
    ],
)
def test_an_impossible_build_reports_why_and_leaves_nothing(tmp_path, name, option, complaint):
    done = build("--into", tmp_path, name, "--", option)
    assert done.returncode != 0
    assert complaint in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_plugin_that_there_is_not_is_bad_usage():
    done = build("nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing" in done.stderr


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("is_here", [True, False])
def test_opencl_is_left_out_where_it_is_not(tmp_path, is_here):
    """A compiler that does or does not find it, and a cmake that makes empty libraries."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "compiler", f"exit {int(not is_here)}")
    script(folder / "cmake", '[ "$1" = -S ] && touch "$4/lib$(basename "$2").so"; exit 0')
    path = f"{folder}:{DEVELOPER_ENVIRONMENT['PATH']}"
    done = build("--into", tmp_path / "out", PATH=path, CXX=str(folder / "compiler"))

    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert done.returncode == 0, done.stderr
    assert made >= set(NAMES)
    for name in ("opencl_device", "opencl_kernels"):
        assert (name in made) == is_here
        assert (f"{name} is left out" in done.stderr) != is_here


# -- contrib/try_in_tensorflow, which needs a TensorFlow, that the tests do not have -------------


def test_it_tries_every_plugin_with_options_that_exist():
    """CMake takes an option that nobody reads without an error."""
    builds = runpy.run_path(str(CONTRIB / "try_in_tensorflow"))["BUILDS"]  # which runs nothing else

    assert set(builds) == {path.parent.name for path in CONTRIB.glob("*/CMakeLists.txt")}
    for name, options in builds.items():
        text = (CONTRIB / name / "CMakeLists.txt").read_text(encoding="utf-8")
        given = {option.removeprefix("-D").partition("=")[0] for option in options}
        assert given <= set(re.findall(r"set\((MTF_\w+) ", text))
