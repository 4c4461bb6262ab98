"""An application whose plugins run in workers, one of them hostile; it reports how it fared.

Usage: python application.py HOSTILE_LIBRARY GOOD_LIBRARY FOLDER. Each line of the input is a JSON
object that names a deed (`hostile_deeds.Deed`); each line of the output reports what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from modular_tf import PluginService
from modular_tf.errors import ModularTFError
from tests.isolation.kill_campaign import left_behind

_DATA = b"hostile data " * 100
_STORED = b"stored by another plugin " * 10_000
_MOST_TRIES = 3


def _write(filesystem, uri, data):
    with filesystem.new_writable_file(uri) as file:
        file.append(data)


def _call(filesystem, call, name):
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


def _probe(filesystem, kind):
    """Use the hostile plugin as anybody would; what it held may be lost."""
    if kind == "list":
        filesystem.get_children("hostile://h/")
    else:
        filesystem.path_exists("hostile://h/")
        large = b"0123456789abcdef" * 20_000
        file = filesystem.new_writable_file("hostile://h/large")
        file.append(large)
        file.close()
        if filesystem.read_file("hostile://h/large") != large:
            raise AssertionError("the hostile plugin's next file has another content")


def _outcome(act, *arguments):
    try:
        act(*arguments)
    except ModularTFError as error:
        message = f"{error.rule} {error.message}"
        where = [error.plugin, error.operation, error.path]
        return {"error": type(error).__name__, "message": message, "where": where}
    except BaseException as error:  # noqa: BLE001  (reported: no other type may come)
        return {"error": "UNTYPED", "message": repr(error)}
    return {"error": ""}


def _descriptors():
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return found


class _Others:
    """The other plugins and their data, in the middle of use."""

    def __init__(self, service, folder):
        file, self._good = str(folder / "file"), service.filesystem("other")
        self._places = [
            (self._good, "other://h/stored"),
            (service.filesystem("ram"), "ram://stored"),
            (service.filesystem_for(file), file),
        ]
        for filesystem, uri in self._places:
            _write(filesystem, uri, _STORED)
        self._readers = [fs.new_random_access_file(uri) for fs, uri in self._places]
        self._writer = self._good.new_writable_file("other://h/log")
        self._writer.append(b"before ")

    def surviving(self):
        """Read and write on; return how many of the four still do what they should."""
        survived = 0
        for reader, (filesystem, uri) in zip(self._readers, self._places, strict=True):
            held = reader.read(5, len(_STORED) - 5) == _STORED[5:]
            survived += held and filesystem.read_file(uri) == _STORED
            reader.close()
        self._writer.append(b"after")
        self._writer.close()
        return survived + (self._good.read_file("other://h/log") == b"before after")


def _attempt(deed, libraries, folder):
    timeout = deed["timeout"]
    with PluginService(plugin_paths=libraries, isolation="process", call_timeout_s=timeout) as made:
        made.load()
        hostile = made.filesystem("hostile")
        others = _Others(made, folder)
        _write(hostile, "hostile://h/data", _DATA)
        _probe(hostile, "file")  # so that there is shared memory
        report = {"deed": _outcome(_call, hostile, deed["call"], deed["name"])}
        time.sleep(deed["pause"])
        probes = [_outcome(_probe, hostile, deed["probe"])]
        while probes[-1]["error"] and len(probes) < _MOST_TRIES:
            probes.append(_outcome(_probe, hostile, deed["probe"]))
        report |= {"probes": probes, "survived": others.surviving()}
    return {**report, "left": left_behind()}


def main():
    *libraries, folder = sys.argv[1:]
    output = os.fdopen(os.dup(1), "w")
    before = None
    for line in sys.stdin:
        report = _attempt(json.loads(line), libraries, Path(folder))
        descriptors = _descriptors()
        before = before or descriptors
        report["leaked"] = sorted(set(descriptors) - set(before))
        report["more_descriptors"] = len(descriptors) - len(before)
        output.write(json.dumps(report) + "\n")
        output.flush()


main()
