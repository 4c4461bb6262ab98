"""The OpenCL plugin of contrib, built by scripts/build_plugins once per content, and its driver."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.machine import DEVELOPER_ENVIRONMENT, cached_folder

CHECKOUT = Path(__file__).parents[2]
_SOURCES = (CHECKOUT / "contrib" / "opencl_device", CHECKOUT / "modular_tf" / "include")

PLATFORM = "Portable Computing Language"
"""What PoCL calls itself."""

ON_POCL = {"MTF_OPENCL_PLATFORM": PLATFORM}
"""The environment of tests: PoCL or an error, whatever other drivers the machine has."""

TWO_DEVICES = {**ON_POCL, "POCL_DEVICES": "pthread pthread"}
"""PoCL shows the processor twice."""


def built_plugin() -> Path:
    """Return the plugin's library."""
    folder = cached_folder(f"opencl_device/{_content()}", _build)
    return folder / "opencl_device" / "libopencl_device.so"


def _content() -> str:
    total = hashlib.sha256()
    for source in _SOURCES:
        for file in sorted(source.rglob("*")):
            if file.is_file():
                total.update(str(file.relative_to(CHECKOUT)).encode())
                total.update(file.read_bytes())
    return total.hexdigest()[:24]


def _build(folder: Path) -> None:
    done = subprocess.run(
        [CHECKOUT / "scripts" / "build_plugins", "--into", folder, "opencl_device"],
        env=dict(DEVELOPER_ENVIRONMENT),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            "the OpenCL plugin cannot be built; the tests need OpenCL and PoCL (Debian: "
            f"opencl-headers ocl-icd-opencl-dev pocl-opencl-icd)\n{done.stderr}",
            pytrace=False,
        )
