"""Every call that users can make on a filesystem, and every way in which it can be closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable


class Place:
    """A service of its own, with a file in one of its filesystems."""

    def __init__(self, scheme: str, root: str, plugins: list[str]) -> None:
        self.service = PluginService(plugin_paths=plugins)
        self.service.load()
        self.fs: Any = self.service.filesystem(scheme)
        self.file = f"{root}/slow"
        self.fs.recursively_create_dir(root)
        with self.fs.new_writable_file(self.file) as writer:
            writer.append(b"0123456789")


class Use(NamedTuple):
    """Something that is done again and again."""

    prepare: Callable[[Place], Any]
    call: Callable[[Place, Any], object]


def _nothing(_place: Place) -> None:
    """Make nothing."""


def _on_path(operation: str, *further: str) -> Use:
    def call(place: Place, _nothing: None) -> object:
        return getattr(place.fs, operation)(place.file, *(place.file + end for end in further))

    return Use(_nothing, call)


def _with(prepare: Callable[[Place], Any], operation: str, *arguments: Any) -> Use:
    return Use(prepare, lambda _place, thing: getattr(thing, operation)(*arguments))


def _file(opener: str) -> Callable[[Place], Any]:
    return lambda place: getattr(place.fs, opener)(place.file)


def _stream(mode: str, buffering: int = -1) -> Callable[[Place], Any]:
    return lambda place: place.fs.open(place.file, mode, buffering)


def _fsspec_file(mode: str) -> Callable[[Place], Any]:
    def opened(place: Place) -> Any:
        return ModularFileSystem(place.fs.scheme, service=place.service).open(place.file, mode)

    return opened


_READER, _WRITER = _file("new_random_access_file"), _file("new_writable_file")
_REGION = _file("new_read_only_memory_region_from_file")

USES: dict[str, Use] = {
    "open a reader": Use(_nothing, lambda place, _: _READER(place)),
    "open a writer": Use(_nothing, lambda place, _: _WRITER(place)),
    "open for appending": Use(_nothing, lambda place, _: _file("new_appendable_file")(place)),
    "open a region": Use(_nothing, lambda place, _: _REGION(place)),
    "open a stream": Use(_nothing, lambda place, _: _stream("rb")(place)),
    "create_dir": _on_path("create_dir"),
    "recursively_create_dir": _on_path("recursively_create_dir"),
    "delete_file": _on_path("delete_file"),
    "delete_dir": _on_path("delete_dir"),
    "delete_recursively": _on_path("delete_recursively"),
    "rename_file": _on_path("rename_file", "2"),
    "copy_file": _on_path("copy_file", "2"),
    "path_exists": _on_path("path_exists"),
    "paths_exist": Use(_nothing, lambda place, _: place.fs.paths_exist([place.file] * 3)),
    "stat": _on_path("stat"),
    "is_directory": _on_path("is_directory"),
    "get_file_size": _on_path("get_file_size"),
    "get_children": _on_path("get_children"),
    "get_matching_paths": _on_path("get_matching_paths"),
    "translate_name": _on_path("translate_name"),
    "flush_caches": Use(_nothing, lambda place, _: place.fs.flush_caches()),
    "options": Use(_nothing, lambda place, _: place.fs.get_filesystem_configuration()),
    "open_count": Use(_nothing, lambda place, _: place.fs.open_count),
    "read": _with(_READER, "read", 0, 10),
    "readinto": Use(_READER, lambda _place, reader: reader.readinto(0, bytearray(10))),
    "append": _with(_WRITER, "append", b"data"),
    "tell": _with(_WRITER, "tell"),
    "flush": _with(_WRITER, "flush"),
    "sync": _with(_WRITER, "sync"),
    "view": Use(_REGION, lambda _place, region: bytes(region.view())),
    "read a stream": _with(_stream("rb"), "read", 4),
    "read a raw stream": _with(_stream("rb", 0), "read", 4),
    "read a text": _with(_stream("r"), "readline"),
    "seek": _with(_stream("rb"), "seek", 0),
    "write a stream": _with(_stream("wb"), "write", b"data"),
    "write a text": _with(_stream("w"), "write", "data"),
    "flush a stream": _with(_stream("wb"), "flush"),
    "read by fsspec": _with(_fsspec_file("rb"), "read", 4),
    "write by fsspec": _with(_fsspec_file("wb"), "write", b"data"),
}

CLOSES: dict[str, Callable[[Place, list[Any]], object]] = {
    "close": lambda _place, things: [thing.close() for thing in things if thing is not None],
    "drop": lambda _place, things: things.clear(),
    "filesystem.close": lambda place, _things: place.fs.close(),
    "service.close": lambda place, _things: place.service.close(),
    "exit": lambda place, _things: place.service.close_at_exit(),
}
"""How something ends: what a use was given is in a list that nobody else keeps for long."""
