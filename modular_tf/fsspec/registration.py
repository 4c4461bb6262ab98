"""Registration of a service's schemes in fsspec, and so in pandas and pyarrow."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from fsspec.registry import (  # type: ignore[import-untyped]
    _registry,
    known_implementations,
)

from modular_tf.errors import AlreadyExistsError, NotFoundError
from modular_tf.events import EventLog
from modular_tf.fsspec import protocols
from modular_tf.fsspec.filesystem import ModularFileSystem
from modular_tf.fsspec.own_clients import warn_of_own_clients

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.service.service import PluginService

_log = EventLog("fsspec")


@dataclass(frozen=True)
class Registration:
    """The protocols that `register` took, and how to undo it.

    Attributes:
        taken: The protocols that the service's plugins now serve.
        kept: The protocols that stay with fsspec's own implementation, and its name.
    """

    taken: tuple[str, ...]
    kept: Mapping[str, str]
    _layers: Mapping[str, protocols.Layer]

    def undo(self) -> None:
        """Remove this registration only; a second call does nothing.

        A protocol that was not taken since is served by its former implementation again. Existing
        filesystems go on using their service.
        """
        for protocol, layer in self._layers.items():
            protocols.give_back(protocol, layer)


def register(
    service: PluginService,
    clobber: bool = False,
    *,
    schemes: Iterable[str] | None = None,
    warn: bool = True,
) -> Registration:
    """Let fsspec open the schemes of `service` by their plugins.

    fsspec lists many protocols that it cannot serve until another package is installed (`s3`,
    `gs`, `az`, …). A protocol counts as somebody else's only if its implementation can really
    be imported: with no s3fs installed, or a broken one, a plugin may have `s3` without further
    ado. `file` stays fsspec's own unless it is named in `schemes`, with `clobber`.

    Registering again moves the schemes to the service that was given last; undoing that gives them
    back to the one before.

    Args:
        service: It has discovered and loaded its plugins; later ones need another call.
        clobber: Take protocols away from an implementation that works; `file` only if named.
        schemes: Take these only. Default: every scheme of the service.
        warn: Warn (`OwnClientWarning`) of installed libraries that open URIs of these schemes by a
            client of their own and not by fsspec, once for each in a process.

    Returns:
        What was taken and what was left to whom. A protocol that is left is not an error
        unless it was named in `schemes`.

    Raises:
        AlreadyExistsError: One of `schemes` is served by another implementation already.
        NotFoundError: No plugin of `service` serves one of `schemes`.
    """
    wanted = _wanted(service, schemes)
    contested = [s for s in wanted if not clobber or (schemes is None and s == "file")]
    owners = _owners(contested)
    if schemes is not None and owners:
        raise _conflict(service, owners)
    taken = tuple(scheme for scheme in wanted if scheme not in owners)
    layers = {scheme: protocols.layer_of(scheme, service) for scheme in taken}
    registration = Registration(taken, owners, layers)
    try:
        for scheme, layer in layers.items():
            protocols.take(scheme, layer)
        for scheme, owner in owners.items():
            _log.info("fsspec.protocol_kept", scheme=scheme, owner=owner)
        if warn:
            warn_of_own_clients(taken, stacklevel=2)
    except BaseException:
        registration.undo()
        raise
    return registration


def _wanted(service: PluginService, schemes: Iterable[str] | None) -> list[str]:
    # What fsspec serves by itself needs no way through this package.
    by_fsspec = service.fallback_schemes()
    served = [scheme for scheme in service.schemes() if scheme and scheme not in by_fsspec]
    if schemes is None:
        return served
    wanted = list(schemes)
    missing = [scheme for scheme in wanted if scheme not in served]
    if missing:
        raise NotFoundError(f"no plugin serves {missing}; schemes served: {sorted(served)}")
    return wanted


def _owners(schemes: Iterable[str]) -> dict[str, str]:
    found = {scheme: _working_owner(scheme) for scheme in schemes}
    return {scheme: owner for scheme, owner in found.items() if owner is not None}


def _working_owner(scheme: str) -> str | None:
    """Return the name of the other implementation that fsspec would use, if it can be imported."""
    registered = _registry.get(scheme)
    if registered is not None:
        ours = issubclass(registered, ModularFileSystem)
        return None if ours else f"{registered.__module__}.{registered.__qualname__}"
    known = known_implementations.get(scheme)
    if known is None:
        return None
    name: str = known["class"]
    try:
        import_module(name.partition(":")[0] if ":" in name else name.rpartition(".")[0])
    except Exception:  # noqa: BLE001  (a broken client may raise anything, and serves nobody)
        return None
    return name


def _conflict(service: PluginService, owners: Mapping[str, str]) -> AlreadyExistsError:
    plugins = service.schemes()
    each = "; ".join(
        f"{scheme!r} is served by {owner}, and by plugin {plugins[scheme]!r}"
        for scheme, owner in owners.items()
    )
    return AlreadyExistsError(f"fsspec: {each}. Pass clobber=True to let the plugin serve it")
