"""Storage options: those of other filesystems of fsspec, as variables of the plugin's environment.

A plugin reads its settings from the environment when it is first used, so one process has one
account for each. Options that say what the environment says need nothing; others are the
environment of an instance, in a process of its own. What no variable says is refused: an ignored
credential would be worse than an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from modular_tf.loading.storage_options import storage_options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.loading.storage_options import StorageOptions

_OF_FSSPEC = frozenset(("asynchronous", "loop"))  # it passes them to filesystems by itself
_SECRET = re.compile(r"SECRET|TOKEN|PASSW|SAS|KEY$")


class Options(dict[str, Any]):
    """Options as they are pickled, with all values, and shown, without any."""

    def __repr__(self) -> str:
        """Return the names alone."""
        return f"Options({', '.join(sorted(self))})"


def environment_of(
    scheme: str, library: str | None, options: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return the environment of the instance that follows some options; {} for the plugin itself.

    Args:
        scheme: The scheme.
        library: The plugin's file; None where a Python object serves.
        options: What the caller passed besides the options of `ModularFileSystem`.

    Returns:
        Variables beside those of this process, or instead of them; None for one that it lacks.

    Raises:
        TypeError: There are options that the plugin cannot follow. It names each, and what to do
            in its place, and shows no value.
    """
    known = storage_options_of(library or "", scheme)
    meant = [
        (name, value)
        for name, value in _entries(options, known)
        if name not in _OF_FSSPEC and value is not None and not _has_no_effect(name, value, known)
    ]
    unmet = [
        f"{name!r}: {_advice(name, known)}"
        for name, value in meant
        if not _is_said(name, value, known)
    ]
    if unmet:
        raise TypeError(f"storage options that {scheme!r} does not follow: {'; '.join(unmet)}")
    said = {
        known.variables[name]: _as_text(value) for name, value in meant if name in known.variables
    }
    switched = {
        variable: text or None
        for name, _ in meant
        for variable, text in known.switches.get(name, {}).items()
    }
    if not switched and all(_of_process(name) == value for name, value in said.items()):
        return {}
    unset = {other for name in said for other in known.unset_with.get(name, ())} - said.keys()
    return {**dict.fromkeys(unset & os.environ.keys()), **switched, **said}


def public_part(environment: Mapping[str, str | None]) -> str:
    """Return what tells environments apart that are of different accounts; no secret is in it."""
    if not environment:
        return ""
    shown = sorted(f"{k}={v}" for k, v in environment.items() if not _SECRET.search(k))
    return sha256("\0".join(shown).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _entries(options: Mapping[str, Any], known: StorageOptions) -> Iterator[tuple[str, Any]]:
    """Yield options in the order of their names, tables whose entries are known entry by entry."""
    for name, value in sorted(options.items()):
        is_table = any(of.startswith(f"{name}.") for of in known.names)
        if is_table and isinstance(value, Mapping):
            yield from ((f"{name}.{entry}", below) for entry, below in value.items())
        else:
            yield name, value


def _has_no_effect(name: str, value: Any, known: StorageOptions) -> bool:
    if name in known.switches and value is False:
        return True
    return value in known.without_effect.get(name, ())


def _is_said(name: str, value: Any, known: StorageOptions) -> bool:
    """Tell whether a variable says what an option says."""
    if name in known.switches:
        return value is True
    if name not in known.variables or not isinstance(value, (str, int, os.PathLike)):
        return False
    return known.variables[name] not in known.files or os.path.isfile(_as_text(value))


def _of_process(variable: str) -> str | None:
    said = os.environ.get(variable)
    return None if said is None else said.rstrip("/")


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return (
        os.fspath(value).rstrip("/") if isinstance(value, os.PathLike) else str(value).rstrip("/")
    )


def _advice(name: str, known: StorageOptions) -> str:
    if name in known.switches:
        return "expected True or False"
    if name in known.variables:
        variable = known.variables[name]
        return f"expected {known.files.get(variable, 'a text')}, for {variable}"
    return known.advice.get(name, "the plugin has no such setting")
