"""scripts/build_plugins: each plugin builds on its own, with the options of its author."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.contrib.plugin_process import PluginProcess
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

CHECKOUT = Path(__file__).parents[2]
SCRIPT = CHECKOUT / "scripts" / "build_plugins"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments],
        env=dict(DEVELOPER_ENVIRONMENT),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "option", "scheme", "schemes"),
    [
        ("posix_filesystem", "-DMTF_POSIX_SCHEMES=disk", "disk", ["disk"]),
        ("ram_filesystem", "-DMTF_RAM_SCHEME=ramfs", "ramfs", ["ramfs"]),
    ],
)
def test_filesystem_under_another_scheme(
    tmp_path: Path, name: str, option: str, scheme: str, schemes: list[str]
) -> None:
    done = _run("--into", str(tmp_path), name, "--", option)
    assert done.returncode == 0, done.stderr
    library = tmp_path / name / f"lib{name}.so"
    assert done.stdout == f"{library}\n"
    plugin = PluginProcess("filesystem", library, scheme)
    assert plugin.facts()["schemes"] == schemes
    assert plugin.close() == 0


def test_device_under_another_type(tmp_path: Path) -> None:
    done = _run("--into", str(tmp_path), "host_device", "--", "-DMTF_HOST_DEVICE_TYPE=MTF_CPU")
    assert done.returncode == 0, done.stderr
    plugin = PluginProcess("device", tmp_path / "host_device" / "libhost_device.so")
    assert plugin.facts()["type"] == b"MTF_CPU"
    assert plugin.close() == 0


def test_impossible_device_type_is_refused(tmp_path: Path) -> None:
    done = _run("--into", str(tmp_path), "host_device", "--", "-DMTF_HOST_DEVICE_TYPE=cpu0")
    assert done.returncode != 0
    assert "'cpu0' is no device name" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_missing_headers_are_named(tmp_path: Path) -> None:
    done = _run("--into", str(tmp_path), "ram_filesystem", "--", "-DMODULAR_TF_INCLUDE_DIR=/none")
    assert done.returncode != 0
    assert "-DMODULAR_TF_INCLUDE_DIR" in done.stderr


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"]])
def test_bad_usage(arguments: list[str]) -> None:
    done = _run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing" in done.stderr
