"""What every subject starts with: the plugin under test, loaded, and short names for its files.

This file is never imported by a test; its text is put in front of the code of a child process.
"""

from __future__ import annotations

import dataclasses
import os

import modular_tf as mtf
import modular_tf.loading.known_defects as known
from modular_tf import errors  # noqa: F401  (for the subjects)

_wanted_workarounds = known.workarounds_for


def _workarounds_without(path: str, scheme: str) -> known.Workarounds:
    """Leave out the workarounds that the test names; all but those that keep the process alive."""
    workarounds = _wanted_workarounds(path, scheme)
    names = os.environ["WILD_WITHOUT"].split(",")
    kept = {name: getattr(known.NO_WORKAROUNDS, name) for name in names}
    return dataclasses.replace(workarounds, **kept)


if os.environ.get("WILD_WITHOUT"):
    known.workarounds_for = _workarounds_without

service = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]], bundled=False)
service.load(os.environ["WILD_PLUGIN"])
base = os.environ["WILD_BASE"]
fs = service.filesystem_for(base)


def uri(path: str) -> str:
    return f"{base}/{path}"


def put(path: str, data: bytes = b"data") -> None:
    with fs.new_writable_file(uri(path)) as file:
        file.append(data)


def get(path: str, offset: int = 0, n: int = 1 << 20) -> bytes:
    with fs.new_random_access_file(uri(path)) as file:
        return file.read(offset, n)


def expect(actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"found {actual!r}, expected {expected!r}")


def expect_error(kind: type[Exception], call: object, *args: object) -> Exception:
    try:
        result = call(*args)
    except kind as error:
        return error
    raise AssertionError(f"{call.__name__}{args} returned {result!r}, expected {kind.__name__}")
