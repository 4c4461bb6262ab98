"""Storage options: those of other filesystems of fsspec, as variables of the plugin's environment.

A plugin reads its settings from the environment when it is first used, so one process has one
account for each. Options that say what the environment says need nothing; others are the
environment of an instance, in a process of its own. What only tunes another client is ignored, with
one warning. What else no variable says is refused: an ignored credential would be worse than an
error.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from modular_tf.loading.storage_options import storage_options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.loading.storage_options import StorageOptions

_OF_FSSPEC = frozenset(("asynchronous", "loop"))  # it passes them to filesystems by itself
_SECRET = re.compile(r"SECRET|TOKEN|PASSW|SAS|KEY$")


_OF_PYTHON = "no plugin serves the scheme; give the option in [filesystems] of the configuration"
_told: set[tuple[str, str]] = set()  # scheme and option


class IgnoredOptionWarning(UserWarning):
    """A storage option that tunes another client, and that the plugin has no use for.

    It is told of each scheme and option once in a process;
    `warnings.simplefilter("ignore", modular_tf.fsspec.IgnoredOptionWarning)` does without.
    """


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
    given = [
        (name, value)
        for name, value in _entries(options, known)
        if name not in _OF_FSSPEC and value is not None
    ]
    endpoints = {
        known.variables[name]: str(value) for name, value in given if name in known.variables
    }
    meant = [
        (name, value)
        for name, value in given
        if name not in known.ignored
        and not _has_no_effect(name, value, known)
        and not _is_said_by_endpoint(name, value, known, endpoints)
    ]
    no_setting = "the plugin has no such setting" if library else _OF_PYTHON
    unmet = [
        f"{name!r}: {_advice(name, known) or no_setting}"
        for name, value in meant
        if not _is_said(name, value, known)
    ]
    if unmet:
        raise TypeError(f"storage options that {scheme!r} does not follow: {'; '.join(unmet)}")
    _tell_ignored(scheme, [name for name, _ in given if name in known.ignored], known)
    said = {
        known.variables[name]: _as_said(known.variables[name], value)
        for name, value in meant
        if name in known.variables
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


def _is_said_by_endpoint(
    name: str, value: Any, known: StorageOptions, endpoints: Mapping[str, str]
) -> bool:
    """Return whether the URL of the endpoint begins as a switch for TLS says."""
    variable = known.said_by_endpoint.get(name)
    if variable is None or not isinstance(value, bool):
        return False
    endpoint = endpoints.get(variable) or os.environ.get(variable, "")
    return endpoint.startswith("https://" if value else "http://")


def _tell_ignored(scheme: str, names: list[str], known: StorageOptions) -> None:
    """Warn once in a process of options that are of no use to a plugin."""
    new = [name for name in names if (scheme, name) not in _told]
    _told.update((scheme, name) for name in new)
    if new:
        advice = {name: known.advice[name] for name in new if name in known.advice}
        each = (f"{n!r} ({advice[n]})" if n in advice else repr(n) for n in new)
        text = f"{scheme!r} ignores storage options that tune another client: {', '.join(each)}"
        warnings.warn(text, IgnoredOptionWarning, stacklevel=2)


def _is_said(name: str, value: Any, known: StorageOptions) -> bool:
    """Return whether a variable says what an option says."""
    if name in known.switches:
        return value is True
    if name not in known.variables or not isinstance(value, (str, int, os.PathLike)):
        return False
    return known.variables[name] not in known.files or os.path.isfile(_as_text(value))


def _of_process(variable: str) -> str | None:
    said = os.environ.get(variable)
    return None if said is None else _as_said(variable, said)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _as_said(variable: str, value: Any) -> str:
    """Return the text of a variable; of two spellings of an endpoint one, and a secret whole."""
    text = _as_text(value)
    return text.rstrip("/") if variable.endswith("ENDPOINT") else text


def _advice(name: str, known: StorageOptions) -> str:
    if name in known.switches:
        return "expected True or False"
    if name in known.variables:
        variable = known.variables[name]
        return f"expected {known.files.get(variable, 'a text')}, for {variable}"
    return known.advice.get(name, "")
