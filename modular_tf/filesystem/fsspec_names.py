"""Names of an fsspec filesystem: its paths for our URIs, and the names in its listings."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_OF_THE_PAGE = ("?", "#")
"""How links begin that lead to the listing itself, in another order."""


class FsspecNames:
    """The names of a scheme's files in an fsspec filesystem. [any thread]

    A URI whose scheme is a protocol of the filesystem means what it means to fsspec. Of any other
    URI, what follows `scheme://` is the path. Where paths are whole URLs, as over HTTP, a URI of
    another scheme may hold the URL (`web://https://host/file`), or else stands for one of the
    filesystem's first protocol (`web://host/file`).
    """

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._protocols = _protocols(fs)
        self._serves_all = "generic" in self._protocols
        self._are_unstripped = "data" in self._protocols  # its `info` takes nothing else
        kept = [one for one in self._protocols if one == "data" or _keeps_urls(fs, one)]
        self.are_urls = self._serves_all or bool(kept)
        if kept:
            self._protocols = kept

    def path_of(self, uri: str) -> str:
        """Return the path for a URI."""
        url = self._url_of(uri)
        if self._are_unstripped:
            return url
        return str(self._fs._strip_protocol(url))  # noqa: SLF001  (the only way fsspec has)

    def _url_of(self, uri: str) -> str:
        """Return the part of a URI that fsspec can read."""
        match = _URL.fullmatch(uri)
        scheme, rest = match.groups() if match else ("", uri)
        if not self.are_urls:
            return uri if scheme in self._protocols else rest
        if _URL.match(rest):
            return rest
        if self._serves_all or scheme in self._protocols:
            return uri
        return f"{self._protocols[0]}://{rest}"

    def children(self, path: str, listed: Iterable[str]) -> list[str]:
        """Return the names in a directory from the paths that fsspec lists."""
        # Some stores list the directory's own marker along with what is in it.
        found = {one.rstrip("/") for one in listed} - {path.rstrip("/"), plain_path(path)}
        names = {_name_below(path.rstrip("/") + "/", one) for one in found}
        if self.are_urls:
            names = {name for name in names if name and not name.startswith(_OF_THE_PAGE)}
        return sorted(names)

    def kinds(
        self, path: str, entries: Iterable[dict[str, Any]]
    ) -> dict[tuple[str, bool], dict[str, Any]]:
        """Return the entries of a directory by name and whether it is the name of a directory.

        An object of a store may be both. A page may link to a directory with and without a slash.
        """
        return {
            (name, entry["type"] == "directory" and not is_url(entry["name"])): entry
            for entry in entries
            for name in self.children(path, [entry["name"]])
        }

    def has_doubled_slash(
        self, path: str, entries: Iterable[dict[str, Any]], *, asks: bool = True
    ) -> bool:
        """Return whether a directory holds keys with a doubled slash, as `d//key` in `d`.

        A listing shows a directory with the name of the listed one then. Some clients show that for
        the directory's own marker too; of those that can find by a prefix the store is asked.

        Args:
            path: The directory.
            entries: What fsspec lists there.
            asks: Whether the store may be asked.
        """
        directory = plain_path(path)
        shown = {entry["name"] for entry in entries if entry["type"] == "directory"}
        if not directory:
            return False
        if f"{directory}/" in shown or directory not in shown:
            return f"{directory}/" in shown
        from inspect import signature  # noqa: PLC0415  (takes long, and is rarely needed)

        client = self._fs
        while "prefix" not in signature(client.find).parameters:
            client = getattr(client, "fs", None)  # one that a wrapper hands everything on to
            if not hasattr(client, "find"):  # none, or a client of another library
                return True
        return asks and bool(self._fs.find(directory, prefix="/"))


def is_url(name: str) -> bool:
    """Return whether a name in a listing is a whole URL, as those of a page's links are."""
    return _URL.match(name) is not None


def plain_path(path: str) -> str:
    """Return a path as listings show it, where some clients take URLs and list plain paths."""
    match = _URL.match(path)
    return (match[2] if match else path).rstrip("/")


def is_directory_url(url: object) -> bool:
    """Return whether a URL is that of a directory: it ends in a slash, or behind its host."""
    match = _URL.match(url) if isinstance(url, str) else None
    return match is not None and (match[2].endswith("/") or "/" not in match[2])


def _name_below(directory: str, path: str) -> str:
    """Return the child of `directory` on the way to `path`; pages link to more than children."""
    if path.startswith(directory):
        return path[len(directory) :].partition("/")[0]
    return path.rpartition("/")[2]


def _protocols(fs: Any) -> list[str]:
    """Return a filesystem's protocols, those that it passes on first."""
    own = [fs.protocol] if isinstance(fs.protocol, str) else [*fs.protocol]
    # What fsspec's caches store is named as in the filesystem behind them.
    behind = getattr(fs, "fs", None) if hasattr(fs, "target_protocol") else None
    return own if behind is None else [*_protocols(behind), *own]


def _keeps_urls(fs: Any, protocol: str) -> bool:
    """Return whether the filesystem's paths are whole URLs of a protocol."""
    with suppress(Exception):  # some read more out of a URL than this one has
        url = f"{protocol}://host/name"
        return bool(fs._strip_protocol(url) == url)  # noqa: SLF001  (the only way fsspec has)
    return False
