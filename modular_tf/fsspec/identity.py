"""The identity of a filesystem object: scheme, service, paths, pickled form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]
from fsspec.utils import tokenize  # type: ignore[import-untyped]

from modular_tf.errors import UnimplementedError
from modular_tf.fsspec import paths
from modular_tf.fsspec.origin import Origin, service_for

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService


class PluginIdentity(AbstractFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """The part of `ModularFileSystem` that knows its scheme and service."""

    cachable = False

    def __init__(
        self,
        scheme: str | None = None,
        *,
        service: PluginService | None = None,
        plugin: str | None = None,
        config: Any = None,
        auto_mkdir: bool = False,
        use_listings_cache: bool = False,
        listings_expiry_time: float | None = None,
        max_paths: int | None = None,
        **unknown: object,
    ) -> None:
        if scheme not in (None, self.scheme):
            raise TypeError(f"{type(self).__name__} serves {self.scheme!r}, not {scheme!r}")
        _refuse(self.scheme, unknown)
        super().__init__(
            use_listings_cache=use_listings_cache,
            listings_expiry_time=listings_expiry_time,
            max_paths=max_paths,
        )
        self.auto_mkdir = auto_mkdir
        self.service = service or service_for(self.scheme, plugin, config)
        self.service.filesystem(self.scheme)  # raises at once if the scheme is not served
        self.origin = Origin.of(self.service, self.scheme)

    @property
    def filesystem(self) -> Filesystem:
        """The filesystem that serves the scheme now; a plugin can be replaced while it runs."""
        return self.service.filesystem(self.scheme)

    @property
    def scheme(self) -> str:
        """The scheme, which is also fsspec's protocol."""
        return str(self.protocol)

    @property
    def fsid(self) -> str:
        """A name for this filesystem that stays the same from session to session."""
        return f"modular_tf:{self.scheme}:{self.filesystem.plugin}"

    @property
    def _fs_token(self) -> str:
        return str(tokenize(self.origin, self.auto_mkdir))

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return paths.strip_scheme(str(cls.protocol), path)

    def uri(self, path: Any) -> str:
        """Return the URI that the plugin is given for `path`."""
        return f"{self.scheme}://{self._strip_protocol(path)}"

    @property
    def transaction(self) -> NoReturn:
        """Raise: the operations of the C API take no part in transactions."""
        raise UnimplementedError(f"{self.scheme!r}: fsspec transactions are not supported")

    def start_transaction(self) -> NoReturn:
        """Raise, as `transaction` does."""
        raise UnimplementedError(f"{self.scheme!r}: fsspec transactions are not supported")


def _refuse(scheme: str, unknown: dict[str, object]) -> None:
    """Raise for options without effect: an ignored credential is worse than an error."""
    names = sorted(set(unknown) - {"asynchronous", "loop"})
    if names:
        raise TypeError(
            f"unknown storage options for {scheme!r}: {', '.join(names)}; a filesystem plugin "
            "takes its settings from environment variables, see the plugin's documentation"
        )
