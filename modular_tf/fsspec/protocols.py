"""The implementations of each of fsspec's protocols: our services, and those replaced by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fsspec.registry import (  # type: ignore[import-untyped]
    _registry,  # fsspec has no public way to take a protocol back
    register_implementation,
)
from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped]

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.fsspec import origin
from modular_tf.fsspec.filesystem import ModularFileSystem, filesystem_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.service import PluginService


@dataclass(frozen=True, eq=False)
class Layer:
    """One implementation of a protocol, which serves unless another one is above it.

    Attributes:
        service: Our service; None for another implementation.
        implementation: What fsspec uses then; None for none.
    """

    service: PluginService | None
    implementation: type | None


_lock = ForkLock()
_layers: dict[str, list[Layer]] = {}
"""The layers of each protocol; the last one serves. Other implementations are below ours only."""


def layer_of(protocol: str, service: PluginService) -> Layer:
    """Return the layer by which a service serves a protocol."""
    return Layer(service, filesystem_class(protocol))


def take(protocol: str, layer: Layer) -> None:
    """Put a layer on top of a protocol; `give_back` removes it again."""
    with _lock:
        layers = _layers.setdefault(protocol, [])
        present = _registry.get(protocol)
        if present is not layer.implementation:
            layers.append(Layer(None, present))
        layers.append(layer)
        _serve(protocol)


def give_back(protocol: str, layer: Layer) -> None:
    """Remove a layer, if it is there."""
    with _lock:
        layers = _layers.get(protocol, [])
        if layer in layers:
            layers.remove(layer)
        if layers and _registry.get(protocol) is layer.implementation:  # it was not replaced since
            _serve(protocol)


def _serve(protocol: str) -> None:
    """Make fsspec use the layer on top, also for its cached instances."""
    top = _layers[protocol][-1]
    origin.remember(protocol, top.service)
    if top.implementation is not None:
        register_implementation(protocol, top.implementation, clobber=True)
    else:
        _registry.pop(protocol, None)
    if top.service is None:
        _layers[protocol].pop()
    _forget_instances(protocol)


def _forget_instances(protocol: str) -> None:
    """Drop filesystems from fsspec's caches that wrap one of ours: caches, folders and such.

    They would serve what they were made for, though it is no longer what the protocol means.
    """
    for cls in _subclasses(AbstractFileSystem):
        kept: dict[Any, Any] = getattr(cls, "_cache", {})
        for token, instance in list(kept.items()):
            if any(_serves(below, protocol) for below in _below(instance)):
                kept.pop(token, None)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _below(instance: object) -> Iterator[object]:
    """Yield a filesystem and all filesystems that it wraps."""
    yield instance
    attributes = object.__getattribute__(instance, "__dict__")  # some hand on whatever is asked
    fss = attributes.get("fss")
    for below in (attributes.get("fs"), *(fss.values() if isinstance(fss, dict) else ())):
        if isinstance(below, AbstractFileSystem):
            yield from _below(below)


def _serves(instance: object, protocol: str) -> bool:
    return isinstance(instance, ModularFileSystem) and instance.scheme == protocol
