"""One filesystem of each kind that fsspec's registry knows and that needs no server of its own.

Each serves the same tree: `a.txt` and `sub/b.txt` below a folder `top`.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import fsspec
import pygit2
from fsspec.implementations.memory import MemoryFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TREE = {"a.txt": b"0123456789", "sub/b.txt": b"bb"}

WITHOUT_TREES = {"data": "a file's name is its content; it has tests of its own"}

NOT_HERE = {
    "libarchive": "needs a library of the system",
    **dict.fromkeys(("arrow_hdfs", "hdfs"), "need Java and a cluster"),
    "pyscript": "runs in browsers only",
    **dict.fromkeys(
        (
            "dask",
            "dbfs",
            "ftp",
            "gist",
            "github",
            "jlab",
            "jupyter",
            "sftp",
            "smb",
            "ssh",
            "webhdfs",
        ),
        "are clients of a server",
    ),
    "https": "is the class of http; the server here speaks no TLS",
}
"""The kinds in fsspec's own package that are not tried, and why."""


class Served(NamedTuple):
    """A filesystem, and the URI of its folder `top` behind `scheme://`."""

    fs: Any
    top: str = "top"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Serve a folder with listings; yield host and port. It answers ranges with the whole file."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _local(name: str, folder: Path, web: str) -> Served:
    return Served(fsspec.filesystem(name), f"{folder}/top")


def _memory(name: str, folder: Path, web: str) -> Served:
    return Served(_filled_memory())


def _filled_memory() -> MemoryFileSystem:
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    for path, data in TREE.items():
        memory.pipe_file(f"/top/{path}", data)
    return memory


def _cached(name: str, folder: Path, web: str) -> Served:
    behind, top = _http("http", folder, web)
    storage = {"cache_storage": str(folder / "cache")}
    return Served(fsspec.filesystem(name, fs=behind, **storage), top)


def _generic(name: str, folder: Path, web: str) -> Served:
    return Served(fsspec.filesystem(name), f"file://{folder}/top")


def _wrapper(name: str, folder: Path, web: str) -> Served:
    return Served(fsspec.filesystem(name, fs=_filled_memory()))


def _directory(name: str, folder: Path, web: str) -> Served:
    return Served(fsspec.filesystem(name, path=str(folder), target_protocol="file"))


def _git(name: str, folder: Path, web: str) -> Served:
    repository = pygit2.init_repository(str(folder), initial_head="master")
    repository.index.add_all(["top"])
    author = pygit2.Signature("A", "a@example.org")
    repository.create_commit("HEAD", author, author, "a tree", repository.index.write_tree(), [])
    return Served(fsspec.filesystem(name, path=str(folder)))


def _reference(name: str, folder: Path, web: str) -> Served:
    held = {f"top/{path}": data for path, data in TREE.items()}
    return Served(fsspec.filesystem(name, fo=held, fs=_filled_memory()))


def _tar(name: str, folder: Path, web: str) -> Served:
    with tarfile.open(folder / "tree.tar", "w") as archive:
        archive.add(folder / "top", "top")
    return Served(fsspec.filesystem(name, fo=str(folder / "tree.tar")))


def _zip(name: str, folder: Path, web: str) -> Served:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path, data in TREE.items():
            archive.writestr(f"top/{path}", data)
    return Served(fsspec.filesystem(name, fo=held))


def _http(name: str, folder: Path, web: str) -> Served:
    return Served(fsspec.filesystem(name, skip_instance_cache=True), f"{web}/top")


KINDS: dict[str, Callable[[str, Path, str], Served]] = {
    **dict.fromkeys(("async_wrapper", "asyncwrapper"), _wrapper),
    **dict.fromkeys(("asynclocal", "file", "local"), _local),
    **dict.fromkeys(("blockcache", "cached", "filecache", "simplecache"), _cached),
    "dir": _directory,
    "generic": _generic,
    "git": _git,
    "http": _http,
    "memory": _memory,
    "reference": _reference,
    "tar": _tar,
    "zip": _zip,
}
"""By name in fsspec's registry: makes one from a folder with `top` in it and a server's address."""
