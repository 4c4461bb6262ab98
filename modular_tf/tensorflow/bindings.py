"""Which filesystem is behind a scheme of TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.errors import UnimplementedError
from modular_tf.filesystem.scheme import scheme_of

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService


@dataclass(frozen=True, slots=True)
class Binding:
    """The service behind a scheme of TensorFlow, and the scheme's name there.

    The filesystem is asked for at each call, so a plugin that is replaced while the process runs,
    and a scheme that is registered again, are found by themselves.

    Attributes:
        service: The service.
        scheme: The scheme's name in the service.
        name: Its name in TensorFlow.
    """

    service: PluginService
    scheme: str
    name: str

    @property
    def filesystem(self) -> Filesystem:
        """The filesystem that serves the scheme now."""
        return self.service.filesystem(self.scheme)

    @property
    def limit_s(self) -> float | None:
        """How long a call may take; None as long as it takes."""
        return self.service.config.call_timeout_s

    def ours(self, uri: str) -> str:
        """Return a URI of TensorFlow's in the service's terms."""
        return uri if self.name == self.scheme else self.scheme + uri.removeprefix(self.name)

    def theirs(self, uri: str) -> str:
        """Return a URI of the service in TensorFlow's terms."""
        return uri if self.name == self.scheme else self.name + uri.removeprefix(self.scheme)


_bindings: dict[str, Binding] = {}  # by the name in TensorFlow


def bind(binding: Binding) -> None:
    """Put a service behind a scheme of TensorFlow, in the place of any other. [any thread]"""
    _bindings[binding.name] = binding


def unbind(name: str) -> None:
    """Take back what `bind` did, where TensorFlow refuses the scheme. [any thread]"""
    _bindings.pop(name, None)


def bound_names() -> frozenset[str]:
    """Return the schemes of TensorFlow whose calls come here. [any thread]"""
    return frozenset(_bindings)


def binding_of(uri: str) -> Binding:
    """Return what is behind a URI of TensorFlow's. [any thread]

    Raises:
        UnimplementedError: No service was put behind its scheme.
    """
    scheme = scheme_of(uri)
    try:
        return _bindings[scheme]
    except KeyError:
        raise UnimplementedError(f"no service serves {scheme!r} to TensorFlow", path=uri) from None
