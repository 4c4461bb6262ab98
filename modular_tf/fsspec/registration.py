"""Registration of a service's schemes in fsspec, and so in pandas and pyarrow."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from fsspec.registry import (  # type: ignore[import-untyped]
    _registry,  # fsspec has no public way to take a protocol back
    known_implementations,
    register_implementation,
    registry,
)
from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import AlreadyExistsError, NotFoundError
from modular_tf.events import EventLog
from modular_tf.fsspec import origin
from modular_tf.fsspec.filesystem import ModularFileSystem, filesystem_class
from modular_tf.service.configured_filesystems import is_installed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from modular_tf.service.service import PluginService

_log = EventLog("fsspec")


@dataclass(frozen=True, eq=False)
class _Layer:
    """One implementation of a protocol, None for none; it serves unless another one is above it.

    `service` is ours, None for another implementation.
    """

    service: PluginService | None
    implementation: type | None


_lock = ForkLock()
_layers: dict[str, list[_Layer]] = {}
"""The layers of each protocol; the last one serves. Other implementations are below ours only."""


@dataclass(frozen=True)
class Registration:
    """The protocols that `register` took, and how to undo it.

    Attributes:
        taken: The protocols that the service's plugins now serve.
        kept: The protocols that stay with fsspec's own implementation, and its name.
    """

    taken: tuple[str, ...]
    kept: Mapping[str, str]
    _layers: Mapping[str, _Layer]

    def undo(self) -> None:
        """Remove this registration only; a second call does nothing.

        A protocol that was not taken since is served by its former implementation again. Existing
        filesystems go on using their service.
        """
        for protocol, layer in self._layers.items():
            with _lock:
                layers = _layers.get(protocol, [])
                if layer in layers:
                    layers.remove(layer)
                if layers and registry.get(protocol) is layer.implementation:  # not replaced since
                    _serve(protocol)


def register(
    service: PluginService,
    clobber: bool = False,
    *,
    schemes: Iterable[str] | None = None,
    warn: bool = True,
) -> Registration:
    """Let fsspec open the schemes of `service` by their plugins.

    fsspec lists many protocols that it cannot serve until another package is installed (`s3`,
    `gs`, `az`, …). A protocol belongs to another implementation only if that can be imported: with
    no s3fs installed, or a broken one, a plugin takes `s3`. `file` stays fsspec's own unless it is
    named in `schemes`, with `clobber`.

    Registering again moves the schemes to the service that was given last; undoing that gives them
    back to the one before.

    Args:
        service: It has discovered and loaded its plugins; later ones need another call.
        clobber: Take protocols away from an implementation that works; `file` only if named.
        schemes: Take these only. Default: every scheme of the service.
        warn: Warn (`OwnClientWarning`) of installed libraries that open URIs of these schemes by a
            client of their own and not by fsspec, once for each in a process.

    Returns:
        What was taken and what was left to which implementation. A protocol that is left is not an
        error unless it was named in `schemes`.

    Raises:
        AlreadyExistsError: One of `schemes` is served by another implementation already.
        NotFoundError: No plugin of `service` serves one of `schemes`.
    """
    # What fsspec serves by itself needs no way through this package.
    by_fsspec = service.fallback_schemes()
    served = [scheme for scheme in service.schemes() if scheme and scheme not in by_fsspec]
    wanted = served if schemes is None else list(schemes)
    if missing := [scheme for scheme in wanted if scheme not in served]:
        raise NotFoundError(f"no plugin serves {missing}; schemes served: {sorted(served)}")
    contested = [s for s in wanted if not clobber or (schemes is None and s == "file")]
    owners = {scheme: owner for scheme in contested if (owner := _working_owner(scheme))}
    if schemes is not None and owners:
        plugins = service.schemes()
        each = "; ".join(
            f"{scheme!r} is served by {owner}, and by plugin {plugins[scheme]!r}"
            for scheme, owner in owners.items()
        )
        raise AlreadyExistsError(f"fsspec: {each}. Pass clobber=True to let the plugin serve it")
    taken = tuple(scheme for scheme in wanted if scheme not in owners)
    layers = {scheme: _Layer(service, filesystem_class(scheme)) for scheme in taken}
    registration = Registration(taken, owners, layers)
    try:
        for scheme, layer in layers.items():
            with _lock:
                below = _layers.setdefault(scheme, [])
                present = registry.get(scheme)
                if present is not layer.implementation:
                    below.append(_Layer(None, present))
                below.append(layer)
                _serve(scheme)
        for scheme, owner in owners.items():
            _log.info("fsspec.protocol_kept", scheme=scheme, owner=owner)
        if warn:
            warn_of_own_clients(taken, stacklevel=2)
    except BaseException:
        registration.undo()
        raise
    return registration


def _working_owner(scheme: str) -> str | None:
    """Return the name of the other implementation that fsspec would use, if it can be imported."""
    present = registry.get(scheme)
    if present is not None:
        ours = issubclass(present, ModularFileSystem)
        return None if ours else f"{present.__module__}.{present.__qualname__}"
    known = known_implementations.get(scheme)
    if known is None:
        return None
    name: str = known["class"]
    try:
        import_module(name.partition(":")[0] if ":" in name else name.rpartition(".")[0])
    except Exception:  # noqa: BLE001  (a broken client may raise anything, and cannot serve)
        return None
    return name


def _serve(protocol: str) -> None:
    """Make fsspec use the layer on top, and drop the instances that it has cached."""
    top = _layers[protocol][-1]
    origin.registered[protocol] = top.service
    if top.implementation is not None:
        register_implementation(protocol, top.implementation, clobber=True)
    else:
        _registry.pop(protocol, None)
    if top.service is None:
        _layers[protocol].pop()
    classes: list[Any] = [AbstractFileSystem]
    while classes:
        classes.extend((cls := classes.pop()).__subclasses__())
        cls.clear_instance_cache()


# -- libraries with clients of their own ----------------------------------------------------------


class OwnClientWarning(UserWarning):
    """An installed library opens URIs of a scheme by itself, not by fsspec, and so not by a plugin.

    `register(service, warn=False)` does without, and so does
    `warnings.simplefilter("ignore", modular_tf.fsspec.OwnClientWarning)`.
    """


class _OwnClient(NamedTuple):
    """A library with clients of its own, for some schemes, and how to use the plugin instead."""

    module: str
    name: str
    schemes: tuple[str, ...]
    remedy: str


_OWN_CLIENTS = (
    _OwnClient(
        "pyarrow",
        "pyarrow, and pandas where it reads or writes parquet,",
        ("gs", "hdfs", "s3", "viewfs"),
        "pass filesystem=fsspec.filesystem(scheme), in pandas also storage_options={}",
    ),
    _OwnClient(
        "polars",
        "polars",
        ("az", "gs", "http", "https", "s3"),
        "pass an open file: fsspec.open(uri)",
    ),
    _OwnClient(
        "duckdb",
        "duckdb",
        ("az", "gs", "http", "https", "s3"),
        "call connection.register_filesystem(fsspec.filesystem(scheme))",
    ),
    _OwnClient(
        "ray",
        "ray.data",
        ("gs", "hdfs", "s3", "viewfs"),
        "pass filesystem=fsspec.filesystem(scheme)",
    ),
)
_reported: set[tuple[str, str]] = set()  # module and scheme


def warn_of_own_clients(schemes: Collection[str], stacklevel: int) -> None:
    """Warn of each installed library that has a client of its own for some of `schemes`.

    Each library and scheme is reported once in a process; none is imported. The warnings name the
    line that is `stacklevel` above this function.
    """
    for client in _OWN_CLIENTS:
        new = [s for s in client.schemes if s in schemes and (client.module, s) not in _reported]
        if new and is_installed(client.module):
            uris = ", ".join(f"{scheme}://" for scheme in new)
            message = f"{client.name} opens {uris} past the plugin; to use it, {client.remedy}"
            warnings.warn(message, OwnClientWarning, stacklevel=stacklevel + 1)
            _reported.update((client.module, scheme) for scheme in new)
