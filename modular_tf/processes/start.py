"""The script that an isolated zygote runs: makes the package importable, then does the job.

Its interpreter has neither the user's settings nor site-packages, so that nothing but the plugin
decides what happens. It finds this package where the application has it, however the application
came by it: an editable install, a changed `sys.path`, a user's own site-packages.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def start(given: dict[str, Any]) -> None:
    """Do what `modular_tf.processes.interpreter` wrote down; does not return."""
    sys.path += given["paths"]
    for name, places in given["packages"].items():
        package = ModuleType(name)
        package.__path__ = places
        parent, _, own_name = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own_name, package)
        sys.modules[name] = package

    import_module(given["module"]).serve(**given["job"])


if __name__ == "__main__":
    start(json.loads(sys.argv[1]))
