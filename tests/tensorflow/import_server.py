"""Runs in a child: imports TensorFlow once, and then does in a fork what its import ends with.

An import takes seconds. What it does with plugins are three statements at the end of its
`__init__.py`; they are taken from there and run again. Reads one JSON object per line and answers
with one: the exit status of the fork, and the exception that ended it.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
from pathlib import Path

import tensorflow as tf

_FIRST = "_running_from_pip_package"
_STATEMENTS = 3
_SECONDS = 60


def _last_statements() -> ast.Module:
    """Return the statements of TensorFlow's import that open plugins."""
    body = ast.parse(Path(tf.__file__).read_text("utf-8")).body
    names = [getattr(statement, "name", None) for statement in body]
    first = names.index(_FIRST)
    return ast.Module(body[first : first + _STATEMENTS], type_ignores=[])


_OPEN_PLUGINS = compile(_last_statements(), tf.__file__, "exec")


def _perform(job: dict[str, str]) -> None:
    if job["plugin"]:
        tf.experimental.register_filesystem_plugin(job["plugin"])
        is_loaded = True
    else:
        exec(_OPEN_PLUGINS, vars(tf))
        is_loaded = any(device.device_type != "CPU" for device in tf.config.list_physical_devices())
    if is_loaded:
        Path(os.environ["DOCTOR_CASE_MARK"]).touch()


def _in_fork(job: dict[str, str]) -> dict[str, object]:
    out, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.environ.update(job["environment"])  # type: ignore[call-overload]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(_SECONDS)
        try:
            _perform(job)
        except BaseException as error:  # noqa: BLE001  (it is told)
            os.write(end, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(end)
    with os.fdopen(out) as said:
        message = said.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"status": status, "message": message}


def main() -> None:
    """Answer until standard input ends."""
    print(json.dumps({"version": tf.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_in_fork(json.loads(line))), flush=True)


main()
