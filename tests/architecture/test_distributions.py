"""Distributions have one version everywhere, and the sources have every tracked file."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import modular_tf

CHECKOUT = Path(__file__).parents[2]
_BUILD = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"


def test_the_version_of_the_build_and_of_the_changelog_is_the_package_s():
    build = (CHECKOUT / "CMakeLists.txt").read_text(encoding="utf-8")
    changelog = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    built = re.findall(r"^project\(modular_tf VERSION (\S+) ", build, re.MULTILINE)
    released = re.findall(r"^## (\d\S*)", changelog, re.MULTILINE)

    assert (built, released[:1]) == ([modular_tf.__version__], [modular_tf.__version__])


def test_the_source_distribution_has_every_tracked_file(tmp_path):
    subprocess.run([sys.executable, "-c", _BUILD, tmp_path], cwd=CHECKOUT, check=True, timeout=200)
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True
    )
    (sdist,) = tmp_path.glob("modular_tf-*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}

    assert set(tracked.stdout.rstrip("\0").split("\0")) - packed == set()
