"""An application whose plugins run in workers, one of them hostile; it tells how it fared.

Usage: python application.py HOSTILE_LIBRARY GOOD_LIBRARY FOLDER. Each line of the input is a JSON
object that names a deed (`hostile_deeds.Deed`); each line of the output says what came of it.
"""

from __future__ import annotations

import json
import locale
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf import PluginService
from modular_tf.errors import ModularTFError
from modular_tf.processes.descendants import children, living_descendants

if TYPE_CHECKING:
    from collections.abc import Callable

_DATA = b"hostile data " * 100
_KEPT = b"kept by another plugin " * 10_000
_MOST_TRIES = 3
_TIME_TO_LEAVE_S = 20.0
_MOST_PROCESSES = 4000


def _called(filesystem: Any, call: str, name: str) -> None:
    if call == "exists":
        filesystem.path_exists(f"hostile://h/deed/{name}")
    elif call == "read":
        file = filesystem.new_random_access_file(f"hostile://h/deed/read/{name}")
        file.read(0, len(_DATA))
    elif call == "append":
        file = filesystem.new_writable_file(f"hostile://h/deed/append/{name}")
        file.append(_DATA)
        file.close()
    elif call == "list":
        filesystem.get_children(f"hostile://h/listing/{name}")
    else:
        filesystem.translate_name(f"hostile://h/deed/translate/{name}")


def _probe(filesystem: Any, kind: str) -> None:
    """Use the hostile plugin as anybody would; what it held may be lost."""
    if kind == "list":
        filesystem.get_children("hostile://h/")
        return
    if kind == "settings":
        transaction = filesystem.get_or_start_transaction_for_path("hostile://h/file")
        filesystem.end_transaction(transaction)
        filesystem.get_filesystem_configuration()
        return
    filesystem.path_exists("hostile://h/")
    large = b"0123456789abcdef" * 20_000
    file = filesystem.new_writable_file("hostile://h/large")
    file.append(large)
    file.close()
    if filesystem.read_file("hostile://h/large") != large:
        raise AssertionError("the hostile plugin's next file has another content")


def _outcome(do: Callable[[], None]) -> dict[str, Any]:
    started = time.monotonic()
    said: dict[str, Any] = {"error": "", "message": ""}
    try:
        do()
    except ModularTFError as error:
        said = {
            "error": type(error).__name__,
            "message": f"{error.rule} {error.message}",
            "where": [error.plugin, error.operation, error.path],
        }
    except BaseException as error:  # noqa: BLE001  (told: no other type may come)
        said = {"error": "UNTYPED", "message": repr(error), "where": [None, None, None]}
    return {**said, "seconds": time.monotonic() - started}


def _own_state() -> dict[str, Any]:
    """Return what is this process's own, which no plugin in a worker can change."""
    mask = os.umask(0o22)
    os.umask(mask)
    numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
    return {
        "environment": dict(os.environ),
        "directory": str(Path.cwd()),
        "umask": mask,
        "locale": locale.setlocale(locale.LC_ALL),
        "users": os.getresuid(),
        "signals": [str(signal.getsignal(number)) for number in numbers],
        "limits": [resource.getrlimit(kind) for kind in range(16)],
    }


def _descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return found


def _strangers() -> list[int]:
    """Return the descendants but the zygote, which is the only child."""
    own = set(children(os.getpid()))
    return [pid for pid in living_descendants(os.getpid(), _MOST_PROCESSES) if pid not in own]


def _left_behind() -> list[int]:
    deadline = time.monotonic() + _TIME_TO_LEAVE_S
    while (left := _strangers()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


class _Others:
    """The other plugins and their data, in the middle of use."""

    def __init__(self, service: PluginService, folder: Path) -> None:
        self._good = service.filesystem("other")
        self._memory = service.filesystem("ram")
        self._file = str(folder / "file")
        self._files = service.filesystem_for(self._file)
        for filesystem, uri in self._places():
            file = filesystem.new_writable_file(uri)
            file.append(_KEPT)
            file.close()
        self._readers = [fs.new_random_access_file(uri) for fs, uri in self._places()]
        self._writer = self._good.new_writable_file("other://h/log")
        self._writer.append(b"before ")

    def _places(self) -> list[tuple[Any, str]]:
        return [
            (self._good, "other://h/kept"),
            (self._memory, "ram://kept"),
            (self._files, self._file),
        ]

    def surviving(self) -> int:
        """Read and write on; return how many of the four still do what they should."""
        survived = 0
        for reader, (filesystem, uri) in zip(self._readers, self._places(), strict=True):
            held = reader.read(5, len(_KEPT) - 5) == _KEPT[5:]
            survived += held and filesystem.read_file(uri) == _KEPT
            reader.close()
        self._writer.append(b"after")
        self._writer.close()
        return survived + (self._good.read_file("other://h/log") == b"before after")


def _try(task: dict[str, Any], libraries: list[str], folder: Path) -> dict[str, Any]:
    service = PluginService(
        plugin_paths=libraries, isolation="process", call_timeout_s=task["timeout"]
    )
    with service:
        service.load()
        hostile = service.filesystem("hostile")
        others = _Others(service, folder)
        file = hostile.new_writable_file("hostile://h/data")
        file.append(_DATA)
        file.close()
        _probe(hostile, "file")  # so that there is shared memory
        told: dict[str, Any] = {
            "deed": _outcome(lambda: _called(hostile, task["call"], task["name"]))
        }
        time.sleep(task["pause"])
        probes = [_outcome(lambda: _probe(hostile, task["probe"]))]
        while probes[-1]["error"] and len(probes) < _MOST_TRIES:
            probes.append(_outcome(lambda: _probe(hostile, task["probe"])))
        told["probes"] = probes
        told["survived"] = others.surviving()
        started = time.monotonic()
    told["closing_s"] = time.monotonic() - started
    told["left"] = _left_behind()
    return told


def main() -> None:
    """Try what is asked for, until the input ends."""
    *libraries, folder = sys.argv[1:]
    output = os.fdopen(os.dup(1), "w")
    before: dict[str, Any] = {}
    for line in sys.stdin:
        task = json.loads(line)
        state = _own_state()
        told = _try(task, libraries, Path(folder))
        told["changed"] = [name for name, value in _own_state().items() if value != state[name]]
        told["threads"] = threading.active_count()
        descriptors = _descriptors()
        told["leaked"] = sorted(set(descriptors) - set(before.get("descriptors", descriptors)))
        told["more_descriptors"] = len(descriptors) - len(before.get("descriptors", descriptors))
        before.setdefault("descriptors", descriptors)
        output.write(json.dumps(told) + "\n")
        output.flush()


main()
