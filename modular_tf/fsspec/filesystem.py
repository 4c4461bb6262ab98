"""`ModularFileSystem`: any registered scheme as a filesystem of fsspec."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.errors import AlreadyExistsError
from modular_tf.fsspec import paths
from modular_tf.fsspec.changes import Changes
from modular_tf.fsspec.reader import DEFAULT_BLOCK_SIZE, CachedReader, ModularReader
from modular_tf.fsspec.writer import ModularWriter

if TYPE_CHECKING:
    import io

    from modular_tf.fsspec.origin import Origin


class ModularFileSystem(Changes):
    """A scheme served by a plugin, for fsspec and everything built on it.

    Instances are thin: connections and caches belong to the plugin. They are therefore not kept
    in fsspec's instance cache (which would keep a closed service alive), and equal ones are
    equal by scheme and service. Listings are not cached unless `use_listings_cache` says so.
    [any thread] Transactions are not supported, nor is a time of creation: the C API has neither.

    A pickled instance carries scheme, plugin path and configuration; in another process the
    plugin is loaded again, in the same process the same service serves on.

    Args:
        scheme: The scheme, when the class does not say it (`filesystem_class`).
        service: The service that has it. Default: the one given to `register`, else
            `modular_tf.service.default.default_service()`.
        plugin: Path of a plugin to load instead, in a service of its own.
        config: Configuration of that service.
        auto_mkdir: Make missing parent directories when writing or copying, as a store without
            directories would.
        use_listings_cache: Remember listings until something changes them through this instance.
        listings_expiry_time: Seconds a remembered listing is good for; None for ever.
        max_paths: How many listings are remembered at most; None for all.

    Raises:
        UnimplementedError: No plugin serves the scheme (TensorFlow's code for that).
        TypeError: A storage option is not one of the above: plugins take their settings from
            the environment, and an ignored credential would be worse than an error.
    """

    blocksize = DEFAULT_BLOCK_SIZE

    def __new__(cls, scheme: str | None = None, **_: Any) -> ModularFileSystem:  # noqa: D102, PYI034
        concrete = filesystem_class(scheme) if cls is ModularFileSystem and scheme else cls
        if concrete.protocol == "abstract":
            raise TypeError("ModularFileSystem needs a scheme: ModularFileSystem('ram')")
        return object.__new__(concrete)

    def __reduce__(self) -> tuple[Any, ...]:
        self.origin.require_portable()
        theirs = {"scheme", "service", "plugin", "config"}
        options = {k: v for k, v in self.storage_options.items() if k not in theirs}
        return _restore, (self.origin, options)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
    ) -> io.IOBase:
        if not autocommit:
            self.start_transaction()
        if mode == "rb":
            return self._open_for_reading(path, block_size, cache_type, cache_options, size)
        return self._open_for_writing(path, mode, block_size or DEFAULT_BLOCK_SIZE)

    def _open_for_reading(
        self,
        path: str,
        block_size: int | None,
        cache_type: str | None,
        cache_options: dict[str, Any] | None,
        size: int | None,
    ) -> io.IOBase:
        size = self._file_size(path) if size is None else size
        file = self.filesystem.new_random_access_file(self.uri(path))
        if cache_type is None:
            return ModularReader(self, path, file, size, block_size or DEFAULT_BLOCK_SIZE)
        cached: io.IOBase = CachedReader(
            self,
            path,
            file,
            size=size,
            block_size=block_size or DEFAULT_BLOCK_SIZE,
            cache_type=cache_type,
            cache_options=cache_options,
        )
        return cached

    def _open_for_writing(self, path: str, mode: str, block_size: int) -> io.IOBase:
        if mode not in {"wb", "ab", "xb"}:
            raise ValueError(f"mode {mode!r} is not one of 'rb', 'wb', 'ab', 'xb'")
        uri, filesystem = self.uri(path), self.filesystem
        exists = mode != "wb" and filesystem.path_exists(uri)
        if mode == "xb" and exists:
            raise AlreadyExistsError(f"{uri} exists already", path=uri)
        position = self._file_size(path) if exists else 0
        opener = filesystem.new_appendable_file if mode == "ab" else filesystem.new_writable_file
        file = self._making_parents(path, lambda: opener(uri))
        return ModularWriter(
            self, path, filesystem, file, position=position, mode=mode, block_size=block_size
        )

    def _file_size(self, path: str) -> int:
        entry = self.info(path)
        if entry["type"] == "directory":
            raise IsADirectoryError(f"{self.uri(path)} is a directory")
        return int(entry["size"])

    def cat_file(
        self, path: Any, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes `start` to `end` of a file; negative ones count from its end."""
        path = self._strip_protocol(path)
        first, last = start or 0, end
        if last is None or last < 0 or first < 0:
            first, last, _step = slice(start, end).indices(self._file_size(path))
        if last <= first:
            return b""
        with self.filesystem.new_random_access_file(self.uri(path)) as file:
            return file.read(first, last - first)


@cache
def filesystem_class(scheme: str) -> type[ModularFileSystem]:
    """Return the subclass that serves `scheme`: fsspec wants a class for each protocol.

    The class can be imported, and so pickled, as `modular_tf.fsspec.by_scheme.<scheme>`.
    """
    return type(
        scheme,
        (ModularFileSystem,),
        {
            "__module__": "modular_tf.fsspec.by_scheme",
            "__doc__": f"The files behind `{scheme}://`.",
            "protocol": scheme,
            "root_marker": paths.root_of(scheme),
        },
    )


def _restore(origin: Origin, options: dict[str, Any]) -> ModularFileSystem:
    return filesystem_class(origin.scheme)(service=origin.service(), **options)
