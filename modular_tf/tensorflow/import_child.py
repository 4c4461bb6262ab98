"""The program of a child of doctor: imports TensorFlow with some plugins, and reports each step.

`doctor` passes this text to `python -c`, so that nothing of this package is imported. The first
argument is a job, the others are the Python path. A report is a line of standard output that begins
with the job's mark; the rest of it is a JSON object with one of these fields:

- `searched`: TensorFlow searches this directory for plugins, so TensorFlow itself is imported;
- `failed`: the exception that ended the import;
- `imported`: the version, once the import has ended, with `schemes`, which TensorFlow serves, and
  `mapped`, the files of plugins that the import has mapped;
- `used`: true, once the devices have been counted;
- `registering`: a plugin that `register_filesystem_plugin` is about to be called with, in a fork;
- `registered`: that plugin, with `message`, the exception; `status`, the exit status of the fork;
  and `output`, what it wrote.
"""

import sys

sys.path[:] = sys.argv[2:]

import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import tempfile  # noqa: E402
from typing import Any  # noqa: E402

_JOB = json.loads(sys.argv[1])
_SHOWN = frozenset(_JOB["shown"])
_PLACES = frozenset(_JOB["places"])
_exists, _listdir = os.path.exists, os.listdir
_OUTPUT = os.dup(1)


def _report(**entry: object) -> None:
    os.write(_OUTPUT, f"\n{_JOB['mark']}{json.dumps(entry)}\n".encode())


def _shown_exists(path: object) -> bool:
    """Return whether a path exists; a place of plugins does where a file of it is shown."""
    place = os.path.abspath(path) if isinstance(path, str) else ""
    if place not in _PLACES:
        return _exists(path)  # type: ignore[arg-type]
    _report(searched=place)
    return any(place in (file, os.path.dirname(file)) for file in _SHOWN)


def _shown_names(path: object = ".") -> list[str]:
    """Return the names in a directory; of a place of plugins only the files that are shown."""
    names: list[str] = _listdir(path)  # type: ignore[call-overload]
    place = os.path.abspath(path) if isinstance(path, str) else ""
    if place not in _PLACES or place in _SHOWN:
        return names
    return [name for name in names if os.path.join(place, name) in _SHOWN]


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _mapped_files() -> list[str]:
    """Return those of the files that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps}
    return [path for path in _JOB["watched"] if os.path.realpath(path) in mapped]


def _register(tf: Any, path: str) -> None:
    _report(registering=path)
    with tempfile.TemporaryFile() as output:
        fork = os.fork()
        if fork == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            signal.alarm(_JOB["limit_s"])
            message = ""
            try:
                tf.experimental.register_filesystem_plugin(path)
            except BaseException as error:  # noqa: BLE001  (it is reported)
                message = _text(error)
            _report(registered=path, message=message, status=0, output="")
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        if status != 0:
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
            _report(registered=path, message="", status=status, output=text[-4096:])


def main() -> None:
    """Do the job."""
    signal.alarm(_JOB["most_s"])  # where doctor is killed, and ends nobody
    os.path.exists, os.listdir = _shown_exists, _shown_names  # type: ignore[assignment]
    try:
        import tensorflow as tf  # type: ignore[import-untyped]  # noqa: PLC0415  (of the user)
    except BaseException as error:  # noqa: BLE001  (it is reported)
        _report(failed=_text(error))
        os._exit(1)
    os.path.exists, os.listdir = _exists, _listdir
    schemes = tf.io.gfile.get_registered_schemes()
    _report(imported=tf.__version__, schemes=schemes, mapped=_mapped_files())
    for path in _JOB["register"]:
        _register(tf, path)
    tf.config.list_physical_devices()
    _report(used=True)
    os._exit(0)


main()
