"""The script that the child process runs: makes the package importable, then does the task.

The child's interpreter has neither the user's settings nor site-packages, so that nothing but the
plugin decides what happens. It finds this package where the application has it, however the
application came by it: an editable install, a changed `sys.path`, a user's own site-packages.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any


def start(given: dict[str, Any]) -> None:
    """Do what `modular_tf.first_contact.task` wrote down; does not return."""
    sys.path += given["paths"]
    for name, places in given["packages"].items():
        package = ModuleType(name)
        package.__path__ = places
        parent, _, own_name = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own_name, package)
        sys.modules[name] = package

    from modular_tf.first_contact.child import run  # noqa: PLC0415  (importable from here on)

    run(**given["task"])


if __name__ == "__main__":
    start(json.loads(sys.argv[1]))
