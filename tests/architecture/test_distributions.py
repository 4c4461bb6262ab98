"""The package under test is an installed one, and whole; the sources have every tracked file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import modular_tf

CHECKOUT = Path(__file__).parents[2]
INSTALLED = Path(modular_tf.__file__).parent
_BUILD = """
import functools, gzip, sys
from scikit_build_core.build import build_sdist

gzip.GzipFile = functools.partial(gzip.GzipFile, compresslevel=1)  # which takes a third of the time
build_sdist(sys.argv[1])
"""


def test_the_checkout_does_not_hide_the_installed_package():
    source = json.loads(distribution("modular_tf").read_text("direct_url.json") or "{}")
    is_editable = source.get("dir_info", {}).get("editable", False)

    assert is_editable == INSTALLED.is_relative_to(CHECKOUT / "modular_tf")


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


def test_the_source_distribution_has_every_tracked_file(tmp_path):
    subprocess.run([sys.executable, "-c", _BUILD, tmp_path], cwd=CHECKOUT, check=True, timeout=200)
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True
    )
    (sdist,) = tmp_path.glob("modular_tf-*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}

    assert set(tracked.stdout.rstrip("\0").split("\0")) - packed == set()
