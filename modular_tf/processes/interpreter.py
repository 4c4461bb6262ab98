"""The command and the environment of a zygote: with the user's settings, or without them."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Modules of an isolated interpreter that do not come with Python, and packages that may lie in two
# folders.
_FOREIGN_MODULES = ("_cffi_backend", *(() if sys.version_info >= (3, 11) else ("tomli",)))
_PACKAGES = ("modular_tf", "modular_tf.native")

_INTERPRETER_NAMES = ("python", "pypy")
# Of the interpreter, of this package, and of a supervisor that would take the child for the parent.
_KEPT_BACK_PREFIXES = ("PYTHON", "MODULAR_TF_")
_KEPT_BACK = frozenset(
    ("LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
)


_LIKE_HERE = """\
import json, sys
path, module, job = json.loads(sys.argv[1])
sys.path[:] = path
from importlib import import_module
import_module(module).serve(**job)
"""


def isolated_command(python: str, module: str, job: Mapping[str, Any]) -> list[str]:
    """Return the command of an interpreter that has neither the user's settings nor site-packages.

    It calls the module's `serve` with a job, as JSON knows it.
    """
    script = os.path.join(os.path.dirname(__file__), "start.py")
    given = {
        "paths": _folders(_FOREIGN_MODULES),
        "packages": {name: list(import_module(name).__path__) for name in _PACKAGES},
        "module": module,
        "job": dict(job),
    }
    # Without the user's settings, but for two that concern files, whose names mean the same there.
    flags = ["-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}"]
    if sys.dont_write_bytecode:
        flags.append("-B")
    return [python, *flags, script, json.dumps(given)]


def command_like_here(python: str, module: str, job: Mapping[str, Any]) -> list[str]:
    """Return such a command with the user's settings, which imports as this interpreter does."""
    return [python, "-c", _LIKE_HERE, json.dumps([sys.path, module, dict(job)])]


def _folders(modules: tuple[str, ...]) -> list[str]:
    """Return where modules, or packages with a folder of their own, are imported from."""
    found = []
    for name in modules:
        spec = find_spec(name)
        if spec is not None and spec.origin and os.sep in spec.origin:
            file = os.path.dirname(spec.origin) if spec.submodule_search_locations else spec.origin
            found.append(os.path.dirname(file))
    return list(dict.fromkeys(found))


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that plugins may see: all but what is for this process alone.

    A variable without a name, which no process can set or unset, is left out as well.
    """
    return {
        name: value
        for name, value in environment.items()
        if name and not name.startswith(_KEPT_BACK_PREFIXES) and name not in _KEPT_BACK
    }


def find_interpreter() -> str | None:
    """Return a command that runs Python code, of this version; None where there is none.

    An application that embeds Python or was frozen is no such command, and would start once more.
    It can name one with `multiprocessing.set_executable`.
    """
    spawn = sys.modules.get("multiprocessing.spawn")
    named = spawn.get_executable() if spawn is not None else None
    if named and os.fsdecode(named) != sys.executable:
        return os.fsdecode(named)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefixes = (sys.exec_prefix, sys.base_exec_prefix)
    own = () if getattr(sys, "frozen", False) else (sys.executable or "",)
    candidates = (*own, *(os.path.join(prefix, "bin", name) for prefix in prefixes))
    return next((path for path in candidates if _is_interpreter(path)), None)


def _is_interpreter(path: str) -> bool:
    # By effective rights: in a setuid process the others are those of its user.
    is_runnable = os.access(path, os.X_OK, effective_ids=True)
    return is_runnable and os.path.basename(path).startswith(_INTERPRETER_NAMES)
