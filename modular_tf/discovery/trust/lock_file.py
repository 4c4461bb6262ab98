"""The lock file: the hashes of plugins that were looked at and accepted.

JSON, sorted, one fact a line, so that a change of it can be read and reviewed. It names no
directories: a plugin is known by its bytes, wherever it lies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LockFile", "LockedFile", "LockedHook", "LockedPlugin"]

_FORMAT = "modular_tf_lock"
_VERSION = 1
_HEX_DIGITS = set("0123456789abcdef")
_SHA256_LENGTH = 64


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """One file by its bytes.

    Attributes:
        file: Its name without directories, for people.
        sha256: Its hash, in hexadecimal digits.
        size: Its length in bytes.
    """

    file: str
    sha256: str
    size: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {"file": self.file, "sha256": self.sha256, "size": self.size}


@dataclass(frozen=True, slots=True, order=True)
class LockedPlugin:
    """One plugin that the lock file accepts.

    Attributes:
        name: What the service called it, for people.
        library: Its file.
        distribution: Name and version of the distribution that brought it, if one did.
        schemes: What it served, if that was known; for people.
        device_types: Likewise.
        companions: The libraries that it brings along.
    """

    name: str
    library: LockedFile
    distribution: str | None = None
    schemes: tuple[str, ...] = ()
    device_types: tuple[str, ...] = ()
    companions: tuple[LockedFile, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {
            "name": self.name,
            **self.library.as_dict(),
            "distribution": self.distribution,
            "schemes": sorted(self.schemes),
            "device_types": sorted(self.device_types),
            "companions": [entry.as_dict() for entry in sorted(self.companions)],
        }


@dataclass(frozen=True, slots=True, order=True)
class LockedHook:
    """One hook of an installed package that the lock file accepts.

    Attributes:
        name: Its distribution and its name, for people.
        value: What its entry point names: `package.module:object`.
        code: The code of the package (`modular_tf.discovery.trust.lock`).
    """

    name: str
    value: str
    code: LockedFile

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {"name": self.name, "value": self.value, **self.code.as_dict()}


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of a lock file: all accepted plugins, and hooks of installed packages.

    Attributes:
        plugins: By the hash of their library.
        hooks: Those of installed packages.
    """

    plugins: Mapping[str, LockedPlugin]
    hooks: tuple[LockedHook, ...] = ()

    @classmethod
    def of(cls, plugins: Iterable[LockedPlugin], hooks: Iterable[LockedHook] = ()) -> LockFile:
        """Return the lock file of plugins and hooks in any order.

        Two with the same bytes are one, with the companions of both.
        """
        table: dict[str, LockedPlugin] = {}
        for plugin in sorted(plugins, key=lambda plugin: (plugin.name, plugin.library.sha256)):
            first = table.setdefault(plugin.library.sha256, plugin)
            companions = tuple(sorted({*first.companions, *plugin.companions}))
            table[plugin.library.sha256] = replace(first, companions=companions)
        return cls(table, tuple(sorted(hooks)))

    @classmethod
    def parse(cls, text: str | bytes) -> LockFile:
        """Return the lock file with a text.

        Raises:
            ValueError: It is none, of another version, or damaged; the message says what and where.
        """
        try:
            values = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(values, dict) or values.get(_FORMAT) != _VERSION:
            raise ValueError(f"expected a JSON object with {_FORMAT!r}: {_VERSION}")
        hooks = _list(values, "hooks") if "hooks" in values else []  # older files have none
        return cls.of(map(_plugin, _list(values, "plugins")), map(_hook, hooks))

    def text(self) -> str:
        """Return the text of the file; the same plugins give the same text."""
        plugins = [plugin.as_dict() for plugin in self.plugins.values()]
        hooks = {"hooks": [hook.as_dict() for hook in self.hooks]} if self.hooks else {}
        return json.dumps({_FORMAT: _VERSION, "plugins": plugins, **hooks}, indent=2) + "\n"


def _plugin(entry: Any) -> LockedPlugin:
    distribution = _value(entry, "distribution", str, type(None))
    return LockedPlugin(
        name=_value(entry, "name", str),
        library=_file(entry),
        distribution=distribution,
        schemes=_texts(entry, "schemes"),
        device_types=_texts(entry, "device_types"),
        companions=tuple(_file(companion) for companion in _list(entry, "companions")),
    )


def _hook(entry: Any) -> LockedHook:
    return LockedHook(_value(entry, "name", str), _value(entry, "value", str), _file(entry))


def _file(entry: Any) -> LockedFile:
    sha256 = _value(entry, "sha256", str)
    if len(sha256) != _SHA256_LENGTH or not _HEX_DIGITS.issuperset(sha256):
        raise ValueError(f"sha256: expected 64 hexadecimal digits, found {sha256!r}")
    return LockedFile(_value(entry, "file", str), sha256, _value(entry, "size", int))


def _list(entry: Any, key: str) -> list[Any]:
    found: list[Any] = _value(entry, key, list)
    return found


def _texts(entry: Any, key: str) -> tuple[str, ...]:
    found = _list(entry, key)
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f"{key}: expected a list of strings, found {found!r}")
    return tuple(found)


def _value(entry: Any, key: str, *kinds: type) -> Any:
    found = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or type(found) not in kinds:
        expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{key}: expected {expected}, found {found!r}")
    return found
