"""Stores for tests of whole trees: one way to make each, to fill it, and to read what is in it.

Files are put and read behind the faces under test, where there is a way behind them.
"""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tests.trees.faces import Faces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMES = ("ram", "posix", "python", "local", "s3", "az")
Contents = dict[str, str]
LINK = "-> "
_serial = itertools.count()


@dataclass
class TreeStore:
    """A store with an empty directory for one test.

    Attributes:
        name: One of `NAMES`.
        faces: The process that has the store's faces.
        root: The URI of the directory, without a slash at the end.
        has_links: It has symbolic and hard links.
        has_keys: It is an object store: any text is the name of an object.
    """

    name: str
    faces: Faces
    root: str
    has_links = False
    has_keys = False

    @property
    def scheme(self) -> str:
        """The scheme by which fsspec names the store."""
        return self.root.partition("://")[0] if "://" in self.root else "file"

    def uri(self, path: str) -> str:
        """Return the URI of a path below the root."""
        return f"{self.root}/{path}" if path else self.root

    def put(self, path: str, data: str) -> None:
        """Write a file, with the directories above it."""
        raise NotImplementedError

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link."""
        raise NotImplementedError

    def contents(self) -> Contents:
        """Return what is below the root by path.

        Directories end with a slash; what links lead to follows `LINK`.
        """
        raise NotImplementedError

    def files(self) -> Contents:
        """Return the contents without directories."""
        return {path: data for path, data in self.contents().items() if not path.endswith("/")}

    def fill(self, contents: Mapping[str, str]) -> None:
        """Put files and links."""
        for path, data in contents.items():
            if data.startswith(LINK):
                self.link(path, data.removeprefix(LINK))
            else:
                self.put(path, data)


class RamStore(TreeStore):
    """The bundled plugin of files in memory; there is no way behind it."""

    def put(self, path: str, data: str) -> None:
        ended = self.faces.call("raw", "ram_put", self.uri(path), data)
        assert ended.ok, ended

    def contents(self) -> Contents:
        ended = self.faces.call("raw", "ram_contents", self.root)
        assert ended.ok, ended
        return dict(ended.value)


class PythonStore(TreeStore):
    """A filesystem of fsspec behind a scheme."""

    def put(self, path: str, data: str) -> None:
        assert self.faces.call("raw", "py_put", self._path(path), data).ok

    def contents(self) -> Contents:
        ended = self.faces.call("raw", "py_contents", self._path(""))
        assert ended.ok, ended
        return dict(ended.value)

    def _path(self, path: str) -> str:
        return "/" + self.uri(path).partition("://")[2]


@dataclass
class DiskStore(TreeStore):
    """The bundled plugin of the disk, by URIs or plain paths."""

    folder: Path = field(default_factory=Path)
    has_links = True

    def put(self, path: str, data: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode())

    def link(self, path: str, target: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def contents(self) -> Contents:
        found = {}
        for above, directories, names in os.walk(self.folder):
            for name in (*directories, *names):
                file = Path(above, name)
                path = str(file.relative_to(self.folder))
                if file.is_symlink():
                    found[path] = f"{LINK}{file.readlink()}"
                elif file.is_dir():
                    found[path + "/"] = ""
                else:
                    found[path] = file.read_bytes().decode(errors="replace")
        return found


@dataclass
class S3Store(TreeStore):
    """The s3 plugin of tensorflow-io on an emulator."""

    endpoint: str = ""
    has_keys = True

    def put(self, path: str, data: str) -> None:
        self._ask("PUT", quote(self._key(path)), data.encode())

    def contents(self) -> Contents:
        import re
        from xml.sax.saxutils import unescape

        prefix = self._key("").partition("/")[2] + "/"
        bucket = self._key("").partition("/")[0]
        listing = self._ask("GET", f"{bucket}?list-type=2&prefix={quote(prefix)}").decode()
        keys = re.findall(r"<Key>(.*?)</Key>", listing, re.DOTALL)
        keys = [unescape(key, {"&#10;": "\n", "&#13;": "\r", "&#9;": "\t"}) for key in keys]
        return {
            key[len(prefix) :]: self._ask("GET", quote(f"{bucket}/{key}")).decode()
            for key in keys
            if key != prefix
        }

    def _key(self, path: str) -> str:
        return self.uri(path).removeprefix("s3://")

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        from http.client import HTTPConnection

        connection = HTTPConnection(urlsplit(self.endpoint).netloc, timeout=30)
        try:
            connection.request(method, f"/{path}", data)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        assert answer.status == HTTPStatus.OK, (method, path, answer.status, body)
        return body


@dataclass
class AzureStore(TreeStore):
    """The az plugin of tensorflow-io on an emulator."""

    container: Any = None
    has_keys = True

    def put(self, path: str, data: str) -> None:
        self.container.upload_blob(self._key(path), data.encode(), overwrite=True)

    def contents(self) -> Contents:
        prefix = self._key("") + "/"
        return {
            blob.name[len(prefix) :]: self.container.download_blob(blob.name).readall().decode()
            for blob in self.container.list_blobs(name_starts_with=prefix)
            if blob.name != prefix
        }

    def _key(self, path: str) -> str:
        return self.uri(path).removeprefix("az://").split("/", 2)[2]


class Stores:
    """Makes stores; emulators and processes are started when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self._emulators: dict[str, Any] = {}
        self._faces: dict[str, Faces] = {}

    def make(self, name: str, faces: Faces | None = None) -> TreeStore:
        """Return a store with an empty directory."""
        serial = f"tree{next(_serial)}"
        faces = faces or self.faces_of(name)
        if name == "ram":
            return RamStore(name, faces, f"ram://{serial}/root")
        if name == "python":
            return PythonStore(name, faces, f"py://{serial}/root")
        if name in ("posix", "local"):
            folder = self._folder / serial
            folder.mkdir()
            uri = f"file://{folder}" if name == "posix" else str(folder)
            return DiskStore(name, faces, uri, folder)
        emulator = self._emulators[name]
        if name == "s3":
            return S3Store(name, faces, emulator.uri(serial), emulator.endpoint)
        return AzureStore(name, faces, emulator.uri(serial), self._emulators["container"])

    def beside(self, store: TreeStore, name: str = "local") -> TreeStore:
        """Return an empty directory of a store of this machine, in the process of another one."""
        return self.make(name, store.faces)

    def faces_of(self, name: str) -> Faces:
        """Return the process that has a store's faces."""
        kind = name if name in ("s3", "az") else "here"
        if kind not in self._faces:
            folder = self._folder / f"faces-{kind}"
            folder.mkdir(parents=True)
            environment = {} if kind == "here" else self._start_emulator(kind, folder)
            self._faces[kind] = Faces(folder, environment)
            self._running.callback(self._faces[kind].end)
        return self._faces[kind]

    def _start_emulator(self, name: str, folder: Path) -> dict[str, str]:
        from tests.fixtures import emulators
        from tests.fixtures.machine import cached_folder
        from tests.fixtures.wild import VERSION, install_distributions

        run = emulators.s3_emulator if name == "s3" else emulators.azure_emulator
        self._emulators[name] = self._running.enter_context(run(folder))
        if name == "az":
            from azure.storage.blob import ContainerClient

            client = ContainerClient(
                self._emulators[name].endpoint, emulators.NAME, credential=emulators.AZURE_KEY
            )
            self._emulators["container"] = self._running.enter_context(client)
        site = cached_folder(f"wild/{VERSION}", install_distributions)
        library = site / "tensorflow_io/python/ops/libtensorflow_io_plugins.so"
        return {**self._emulators[name].environment, "MODULAR_TF_PLUGIN_PATH": str(library)}

    def close(self) -> None:
        """End all processes."""
        self._running.close()


@contextmanager
def running_stores(folder: Path) -> Iterator[Stores]:
    """Give stores until the block ends."""
    stores = Stores(folder)
    try:
        yield stores
    finally:
        stores.close()
