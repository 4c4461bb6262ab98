"""Plugins of contrib: as the package has them, or built by scripts/build_plugins."""

from __future__ import annotations

import hashlib
import subprocess
from functools import partial
from pathlib import Path

import pytest

import modular_tf
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT, cached_folder

CHECKOUT = Path(__file__).parents[2]
_HEADERS = (
    CHECKOUT / "contrib" / "device_headers",
    CHECKOUT / "contrib" / "kernel_headers",
    CHECKOUT / "contrib" / "host_device" / "include",
    CHECKOUT / "contrib" / "opencl_device",
    CHECKOUT / "modular_tf" / "include",
)


def installed_plugin(name: str) -> Path:
    """Return the library of a plugin that the package has.

    Raises:
        FileNotFoundError: The package was built without it.
    """
    for folder in modular_tf.__path__:
        path = Path(folder, "plugins", f"lib{name}.so")
        if path.is_file():
            return path
    raise FileNotFoundError(f"no plugins/lib{name}.so in {list(modular_tf.__path__)}")


def built_plugin(name: str = "opencl_device") -> Path:
    """Return the library of a plugin, built once per content."""
    folder = cached_folder(f"{name}/{_content(name)}", partial(_build, name))
    return folder / name / f"lib{name}.so"


def _content(name: str) -> str:
    total = hashlib.sha256()
    total.update(bytes(CHECKOUT))  # where a plugin finds its libraries
    for source in dict.fromkeys((CHECKOUT / "contrib" / name, *_HEADERS)):
        for file in sorted(source.rglob("*")):
            if file.is_file():
                total.update(str(file.relative_to(CHECKOUT)).encode())
                total.update(file.read_bytes())
    return total.hexdigest()[:24]


def _build(name: str, folder: Path) -> None:
    done = subprocess.run(
        [CHECKOUT / "scripts" / "build_plugins", "--into", folder, name],
        env=dict(DEVELOPER_ENVIRONMENT),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            f"{name} cannot be built; the tests need OpenCL and PoCL (Debian: "
            f"opencl-headers ocl-icd-opencl-dev pocl-opencl-icd)\n{done.stderr}",
            pytrace=False,
        )
