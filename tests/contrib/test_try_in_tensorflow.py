"""contrib/try_in_tensorflow: it knows the plugins that there are, and their options.

What it does needs a TensorFlow, which the tests do not have.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import pytest

from tests.contrib.built_plugin import CHECKOUT

CONTRIB = CHECKOUT / "contrib"
SCRIPT = CONTRIB / "try_in_tensorflow"


def test_it_tries_every_plugin_with_options_that_exist():
    """CMake takes an option that nobody reads without an error."""
    builds = runpy.run_path(str(SCRIPT))["BUILDS"]  # which runs nothing else

    assert set(builds) == {path.parent.name for path in CONTRIB.glob("*/CMakeLists.txt")}
    for name, options in builds.items():
        text = (CONTRIB / name / "CMakeLists.txt").read_text(encoding="utf-8")
        given = {option.removeprefix("-D").partition("=")[0] for option in options}
        assert given <= set(re.findall(r"set\((MTF_\w+) ", text))


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2)])
def test_usage(arguments, status):
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert "Usage: contrib/try_in_tensorflow PYTHON" in done.stdout
