"""contrib/try_in_tensorflow: it knows the plugins that there are, and their options.

What it does needs a TensorFlow, which the tests do not have.
"""

from __future__ import annotations

import re
import runpy

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
