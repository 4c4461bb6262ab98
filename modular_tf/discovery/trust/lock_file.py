"""The lock file: the hashes of plugins that were looked at and accepted.

JSON, sorted, one fact a line, so that a change of it can be read and reviewed. It names no
directories: a plugin is known by its bytes, wherever it lies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from modular_tf.codec import decode, digest, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LockFile", "LockedFile", "LockedHook", "LockedPlugin"]

_FORMAT = "modular_tf_lock"
_VERSION = 1
_Locked = TypeVar("_Locked")


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """One file by its bytes."""

    file: str  # its name without directories, for people
    sha256: Annotated[str, digest]  # in hexadecimal digits
    size: int  # in bytes


@dataclass(frozen=True, slots=True, order=True)
class LockedPlugin:
    """One plugin that the lock file accepts."""

    name: str  # what the service called it, for people
    library: LockedFile
    distribution: str | None = None  # name and version of the distribution that brought it
    schemes: tuple[str, ...] = ()  # that it served, if that was known; for people
    device_types: tuple[str, ...] = ()  # likewise
    companions: tuple[LockedFile, ...] = ()  # the libraries that it brings along


@dataclass(frozen=True, slots=True, order=True)
class LockedHook:
    """One hook of an installed package that the lock file accepts."""

    name: str  # its distribution and its name, for people
    value: str  # what its entry point names: `package.module:object`
    code: LockedFile  # of the whole package (`modular_tf.discovery.trust.lock.code_of_hook`)


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of a lock file: all accepted plugins, and hooks of installed packages."""

    plugins: Mapping[str, LockedPlugin]  # by the hash of their library
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

        Raises `ValueError` if it is none, of another version, or damaged; the message says what and
        where.
        """
        try:
            values = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(values, dict) or values.get(_FORMAT) != _VERSION:
            raise ValueError(f"expected a JSON object with {_FORMAT!r}: {_VERSION}")
        hooks = values.get("hooks", [])  # older files have none
        found = decode(_Content, {"plugins": values.get("plugins"), "hooks": hooks})
        return cls.of(
            [_known(LockedPlugin, entry) for entry in found.plugins],
            [_known(LockedHook, entry) for entry in found.hooks],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plugins and hooks as values of JSON."""
        plugins = [
            {
                "name": plugin.name,
                **encode(plugin.library),
                "distribution": plugin.distribution,
                "schemes": sorted(plugin.schemes),
                "device_types": sorted(plugin.device_types),
                "companions": encode(sorted(plugin.companions)),
            }
            for plugin in self.plugins.values()
        ]
        hooks = [{"name": h.name, "value": h.value, **encode(h.code)} for h in self.hooks]
        return {"plugins": plugins, "hooks": hooks}

    def text(self) -> str:
        """Return the text of the file; the same plugins give the same text."""
        values = self.as_dict()
        if not self.hooks:
            del values["hooks"]
        return json.dumps({_FORMAT: _VERSION, **values}, indent=2) + "\n"


class _Content(NamedTuple):
    plugins: list[Any]
    hooks: list[Any]


def _known(kind: type[_Locked], entry: Any) -> _Locked:
    """Return what an entry has for a kind; later versions may add more."""
    given = decode(dict[str, Any], entry)
    record: Any = kind
    values = {field.name: given.get(field.name) for field in fields(record)}
    for name in ("library", "code"):  # whose fields stand among the others
        if name in values:
            values[name] = {field.name: given.get(field.name) for field in fields(LockedFile)}
    return decode(kind, values)
