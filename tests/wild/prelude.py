"""What every subject starts with: the plugin under test, loaded, and short names for its files.

This file is never imported by a test; its text is put in front of the code of a child process.
"""

from __future__ import annotations

import ctypes  # noqa: F401  (for the subjects, as other names here)
import json
import os
import select  # noqa: F401
import sys
import threading  # noqa: F401
import time  # noqa: F401
import urllib.request

import modular_tf as mtf
from modular_tf import errors  # noqa: F401
from modular_tf.filesystem import workarounds
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.loading import binding

_OPERATIONS = {name for name in vars(PluginFilesystem) if name[0] != "_"} - {
    "after_fork_in_child", "close", "handle", "is_in_use", "open_count", "writer_type",
} | {"is_file_and_directory", "is_object_store", "listing"}  # fmt: skip
_without = set(filter(None, os.environ.get("WILD_WITHOUT", "").split(",")))
worked_around = not _without
_store_class = workarounds.store_class


def _store_without(path: str, scheme: str) -> type[Store]:
    """Return the class of the store without the attributes that the test names.

    An operation is that of the plugin then, and all of them are named by `*`; anything else is that
    of the base of the store's class, or empty.
    """
    store = _store_class(path, scheme)
    names = _without | _OPERATIONS if "*" in _without else _without
    replaced = {}
    for name in names & set(dir(store)):
        bases = (Store,) if name in _OPERATIONS else store.__mro__[1:]
        owners = [base for base in bases if hasattr(base, name)]
        replaced[name] = getattr(owners[0], name) if owners else type(getattr(store, name))()
    return type(f"{store.__name__}Without", (store,), replaced)


if _without:
    workarounds.store_class = _store_without
if "guarded_functions" in _without:
    binding.stores_of = lambda _: []


def begin() -> mtf.PluginService:
    """Return a service that has loaded the plugin."""
    made = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]], bundled=False)
    made.load(os.environ["WILD_PLUGIN"])
    return made


service = begin()
base = os.environ["WILD_BASE"]
fs = service.filesystem_for(base)


def enter(folder: str) -> None:
    """Have `uri` be in a folder of the store, and a failure say which."""
    global base  # noqa: PLW0603  (the subject's)
    if folder:
        base = f"{os.environ['WILD_BASE']}/{folder}"
        print("in", folder, file=sys.stderr)


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


def ask_server(method: str, url: str, body: bytes | None = None) -> bytes:
    """Ask a server past the plugin."""
    request = urllib.request.Request(url, body, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def change(name: str, body: bytes | None = None) -> None:
    """Have another client store or, without a body, delete a file of s3."""
    url = uri(name).replace("s3://", f"{os.environ['WILD_CONTROL']}/")
    ask_server("DELETE" if body is None else "PUT", url, body)


def set_up(**settings: object) -> None:
    """Change settings of the emulator."""
    ask_server("PUT", f"{os.environ['WILD_CONTROL']}/-/settings", json.dumps(settings).encode())


def requests_now() -> dict[str, int]:
    """Return the requests that the emulator has counted, by kind."""
    return json.loads(ask_server("GET", f"{os.environ['WILD_CONTROL']}/-/requests"))["requests"]


def forget_requests() -> None:
    """Have the emulator count from nothing again."""
    ask_server("DELETE", f"{os.environ['WILD_CONTROL']}/-/requests")


def requests_of(call: object) -> dict[str, int]:
    """Return the requests that a call makes, by kind."""
    forget_requests()
    call()
    return requests_now()
