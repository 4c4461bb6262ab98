#!/usr/bin/env python3
"""Tries an installed modular_tf in seconds: the list, a filesystem, a device, an array.

Run it with the interpreter whose installation is tried, from any folder:
python scripts/smoke.py [--filesystem SCHEME]... It needs numpy. Each --filesystem names a scheme
that an installed plugin must serve. Exit status: 0 all works · 1 something does not.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import modular_tf
from modular_tf import gfile


def listed_schemes() -> set[str]:
    """Return the schemes that `modular-tf list` shows; every bundled plugin must be loaded."""
    command = [sys.executable, "-m", "modular_tf", "list", "--json"]
    # Away from the checkout: -m would take the package there instead of the installed one.
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd="/")
    plugins = json.loads(listed.stdout)["plugins"]
    states = {plugin["name"]: plugin["state"] for plugin in plugins}
    for bundled in ("host_device", "posix_filesystem", "ram_filesystem"):
        if states.get(bundled) != "loaded":
            raise SystemExit(f"smoke: {bundled} is not loaded: {states}")
    return {scheme for plugin in plugins for scheme in plugin["schemes"]}


def try_filesystems() -> None:
    """Write in memory, copy to a local file, and compare."""
    content = bytes(range(256)) * 1000
    gfile.makedirs("ram://smoke")
    with gfile.GFile("ram://smoke/file", "wb") as file:
        file.write(content)
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, "file")
        gfile.copy("ram://smoke/file", str(local))
        if local.read_bytes() != content:
            raise SystemExit("smoke: the copy of a file differs")


def try_device() -> None:
    """Take an array to the host device, copy it there, and compare."""
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    with modular_tf.PluginService() as service:
        service.load()
        device = service.device("CPU:0")
        copy = device.put(numbers).copy_to(device)
        if not (copy.to_numpy() == numbers).all():
            raise SystemExit("smoke: the copy of an array differs")


def main() -> None:
    """Try everything, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--filesystem", action="append", default=[], metavar="SCHEME")
    wanted = parser.parse_args().filesystem
    missing = set(wanted) - listed_schemes()
    if missing:
        raise SystemExit(f"smoke: no plugin serves {', '.join(sorted(missing))}")
    try_filesystems()
    try_device()
    print(
        f"modular_tf {modular_tf.__version__} works with Python {platform.python_version()} "
        f"on {platform.machine()}"
    )


if __name__ == "__main__":
    main()
