"""The filesystems that fsspec knows: which are installed, found without importing them."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class NoClientError(Exception):
    """fsspec has no filesystem for a protocol here.

    Attributes:
        remedy: What to do, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def is_installed(module: str) -> bool:
    """Return whether a module without dots could be imported, without doing that. [any thread]"""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        found = find_spec(module)
    except Exception:  # noqa: BLE001  (of a finder that somebody installed)
        return False
    return found is not None and found.origin is not None  # else it is only a directory


def client_class(protocol: str) -> Any:
    """Import fsspec's filesystem class for a protocol, and never this package's own.

    Raises:
        NoClientError: fsspec or the client's package is not installed or cannot be imported, or
            fsspec does not know the protocol.
    """
    name = class_name_of(protocol)
    if not isinstance(name, str):
        return name
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        package = module.partition(".")[0]
        hint = _known()[protocol].get("err") or ""
        text = f"{name} cannot be imported: {type(error).__name__}: {error}"
        if package != "fsspec" and not is_installed(package):
            raise NoClientError(
                f"it needs {package}, which is not installed", f"Run: pip install {package}"
            ) from error
        raise NoClientError(text, hint or f"Install {package} anew.") from error


def class_name_of(protocol: str) -> Any:
    """Return the class that serves a protocol: itself, where it is imported, else its name.

    Raises:
        NoClientError: fsspec is not installed, or does not know the protocol.
    """
    known = _known()
    from fsspec.registry import registry  # type: ignore[import-untyped]  # noqa: PLC0415

    registered = registry.get(protocol)
    if registered is not None and not _is_ours(registered.__module__):
        return registered
    name = known.get(protocol, {}).get("class")
    if name is None or _is_ours(name):
        near = get_close_matches(protocol, known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        remedy = f"{hint}`fsspec.available_protocols()` lists those that it knows."
        raise NoClientError(f"fsspec knows no protocol {protocol!r}", remedy)
    return name


def _known() -> dict[str, dict[str, str]]:
    if not is_installed("fsspec"):
        raise NoClientError("fsspec is not installed", "Run: pip install fsspec")
    try:
        from fsspec.registry import known_implementations  # noqa: PLC0415  (few need it, and late)
    except Exception as error:
        text = f"fsspec cannot be imported: {type(error).__name__}: {error}"
        raise NoClientError(text, "Run: pip install --force-reinstall fsspec") from error
    found: dict[str, dict[str, str]] = known_implementations
    return found


def _is_ours(module: str) -> bool:
    return module.startswith("modular_tf.")
