"""What the dynamic linker of this machine puts into search paths, as it reports by itself."""

from __future__ import annotations

import re
import subprocess
from functools import cache

from modular_tf.discovery.linking.dynamic_linker import running_program

_PLACE = "/nowhere"


@cache
def subdirectories():
    """Return what comes before each directory; the linker looks for a library that is not there."""
    path, linker, _ = running_program()
    environment = {"LD_DEBUG": "libs", "LD_LIBRARY_PATH": _PLACE, "LD_PRELOAD": "libnowhere.so"}
    done = subprocess.run(
        [linker, "--list", path], env=environment, capture_output=True, text=True, check=False
    )
    found = re.search(r"search path=(\S*)\s+\(LD_LIBRARY_PATH\)", done.stderr)
    assert found is not None
    searched = found[1].split(":")
    below = [one.removeprefix(f"{_PLACE}/") for one in searched[: searched.index(_PLACE)]]
    return tuple(dict.fromkeys(below))
