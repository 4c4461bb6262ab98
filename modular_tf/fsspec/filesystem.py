"""`ModularFileSystem`: any registered scheme as a filesystem of fsspec."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from modular_tf.errors import AlreadyExistsError
from modular_tf.fsspec import paths
from modular_tf.fsspec.options import Options
from modular_tf.fsspec.reader import DEFAULT_BLOCK_SIZE, CachedReader, ModularReader
from modular_tf.fsspec.transfers import Transfers
from modular_tf.fsspec.writer import ModularWriter

if TYPE_CHECKING:
    import io

    from modular_tf.fsspec.origin import PortableOrigin


class ModularFileSystem(Transfers):
    """A scheme served by a plugin, for fsspec and everything built on it.

    Instances are thin: connections and caches belong to the plugin. They are therefore not kept
    in fsspec's instance cache (which would keep a closed service alive), and equal ones are
    equal by scheme and service. Listings are not cached unless `use_listings_cache` says so.
    [any thread] Transactions are not supported, nor is a time of creation: the C API has neither.

    A pickled instance carries scheme, configuration, and which library serves (path, distribution,
    version, hash). In another process the plugin is loaded again at the first use, from a file with
    that hash; in the same process the same service serves on. It carries the storage options too,
    secrets among them, as those of other filesystems do: keep it where you would keep the secrets.

    Storage options of other filesystems, as `key`, `secret` and `endpoint_url`, that say other than
    this process's environment are followed by an instance of the plugin: in a process of its own,
    one for each set of options, which is closed with the service.

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
        TypeError: A storage option is not one of the above, and the plugin has no variable for it:
            an ignored credential would be worse than an error. The message says what to do.
    """

    blocksize = DEFAULT_BLOCK_SIZE

    def __new__(cls, scheme: str | None = None, **_: Any) -> ModularFileSystem:  # noqa: D102, PYI034
        concrete = filesystem_class(scheme) if cls is ModularFileSystem and scheme else cls
        if concrete.protocol == "abstract":
            raise TypeError("ModularFileSystem needs a scheme: ModularFileSystem('ram')")
        return object.__new__(concrete)

    def __reduce__(self) -> tuple[Any, ...]:
        theirs = {"scheme", "service", "plugin", "config"}
        options = Options({k: v for k, v in self.storage_options.items() if k not in theirs})
        return _restore, (self.portable_origin(), options)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
        **_: Any,  # what dask tells the readers of other filesystems
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
        file = self._opened(path)
        if size is None:
            try:
                size = self._size_of(path, file)
            except BaseException:
                file.close()
                raise
        if cache_type is None:
            return ModularReader(self, path, file, size, block_size)
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


def _restore(origin: PortableOrigin, options: dict[str, Any]) -> ModularFileSystem:
    return filesystem_class(origin.scheme)(service=origin, **options)
