"""The identity of a filesystem object: scheme, service, paths, pickled form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]
from fsspec.utils import tokenize  # type: ignore[import-untyped]

from modular_tf.concurrency.crew import Crew
from modular_tf.errors import UnimplementedError
from modular_tf.fsspec import paths
from modular_tf.fsspec.options import environment_of, public_part
from modular_tf.fsspec.origin import Origin, PortableOrigin, service_for
from modular_tf.redaction import redacted

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
        service: PluginService | PortableOrigin | None = None,
        plugin: str | None = None,
        config: Any = None,
        auto_mkdir: bool = False,
        use_listings_cache: bool = False,
        listings_expiry_time: float | None = None,
        max_paths: int | None = None,
        **others: object,
    ) -> None:
        if scheme not in (None, self.scheme):
            raise TypeError(f"{type(self).__name__} serves {self.scheme!r}, not {scheme!r}")
        super().__init__(
            use_listings_cache=use_listings_cache,
            listings_expiry_time=listings_expiry_time,
            max_paths=max_paths,
        )
        self.auto_mkdir = auto_mkdir
        self._others = others
        self._environment: dict[str, str | None] | None = None if others else {}
        self._serving: PluginService | PortableOrigin
        if isinstance(service, PortableOrigin):
            # Whoever unpickles must neither have to load plugins nor be told of failures.
            self._serving = service.live() or service
        else:
            self._serving = self._checked(service or service_for(self.scheme, plugin, config))

    def _checked(self, service: PluginService) -> PluginService:
        """Return a service that serves the scheme as the options say; raise if it does not."""
        is_served = service.owner(self.scheme) is not None
        self._environment = self._environment_in(service) if is_served else {}
        if not self._environment:  # else the plugin need not run in this process
            service.filesystem(self.scheme)
        return service

    def _environment_in(self, service: PluginService) -> dict[str, str | None]:
        """Return the environment of the instance that the options ask for; {} for none."""
        if not self._others:
            return {}
        path = Origin.of(service, self.scheme).plugin_path
        return environment_of(self.scheme, path, self._others)

    @property
    def service(self) -> PluginService:
        """The service; one that came from another process loads its plugin when first asked for.

        Raises:
            NotFoundError: This machine does not have the plugin.
        """
        if isinstance(self._serving, PortableOrigin):
            self._serving = self._checked(self._serving.service())
        return self._serving

    @property
    def origin(self) -> Origin:
        """Where this filesystem comes from."""
        return Origin.of(self.service, self.scheme)

    def portable_origin(self) -> PortableOrigin:
        """Return what another process needs; what came from another and was not used goes on.

        Raises:
            UnimplementedError: A Python object of this process serves the scheme.
        """
        if isinstance(self._serving, PortableOrigin):
            return self._serving
        return self.origin.portable(self._serving)

    @property
    def filesystem(self) -> Filesystem:
        """The filesystem that serves the scheme now; a plugin can be replaced while it runs.

        Options that say other than the environment of this process are followed by an instance.
        """
        account = self._account
        if account:
            return self.service.shared_instance(self.scheme, account)
        return self.service.filesystem(self.scheme)

    def _at_once(self, batch_size: int | None = None) -> int:
        """Return how many calls are made at once; `batch_size` is fsspec's, -1 sets no bound."""
        configured = self.service.calls_at_once(self.scheme)
        if batch_size is None or batch_size == -1:
            return configured
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it is -1 or at least 1")
        return min(configured, batch_size)

    def _crew(self, batch_size: int | None = None) -> Crew:
        return Crew(self._at_once(batch_size))

    @property
    def scheme(self) -> str:
        """The scheme, which is also fsspec's protocol."""
        return str(self.protocol)

    @property
    def fsid(self) -> str:
        """A name for this filesystem that stays the same from session to session."""
        account = public_part(self._account)
        name = f"modular_tf:{self.scheme}:{self.filesystem.plugin}"
        return f"{name}:{account}" if account else name

    @property
    def _account(self) -> dict[str, str | None]:
        """The environment of the instance; {} for none."""
        if self._environment is None:  # of what was unpickled
            self._environment = self._environment_in(self.service)
        return self._environment

    @property
    def _fs_token(self) -> str:
        return str(tokenize(self.origin, self.auto_mkdir, *self._account_parts()))

    def _account_parts(self) -> tuple[str, ...]:
        """Return what tells the instances of a service apart: its name, which tells no secret."""
        return (self.service.instance_name(self.scheme, self._account),) if self._account else ()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return paths.strip_scheme(str(cls.protocol), path)

    def uri(self, path: Any) -> str:
        """Return the URI that the plugin is given for `path`."""
        return f"{self.scheme}://{self._strip_protocol(path)}"

    def _is_a_directory(self, path: str, remedy: str = "") -> IsADirectoryError:
        return IsADirectoryError(f"{redacted(self.uri(path))} is a directory{remedy}")

    @property
    def transaction(self) -> NoReturn:
        """Raise: the operations of the C API take no part in transactions."""
        raise UnimplementedError(f"{self.scheme!r}: fsspec transactions are not supported")

    def start_transaction(self) -> NoReturn:
        """Raise, as `transaction` does."""
        raise UnimplementedError(f"{self.scheme!r}: fsspec transactions are not supported")
