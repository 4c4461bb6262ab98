"""Storage options: those of other filesystems of fsspec, as variables of the plugin's environment.

A plugin reads its settings from the environment when it is first used. Options that agree with it
need nothing; others are the environment of an instance, in a process of its own. An option that
only tunes another client is ignored, with one warning; any other unknown one is refused, since an
ignored credential would be worse than an error.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from modular_tf.loading.published import storage_options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.loading.published import StorageOptions

_OF_FSSPEC = frozenset(("asynchronous", "loop"))  # it passes them to filesystems by itself
_SECRET = re.compile(r"SECRET|TOKEN|PASSW|SAS|KEY$")
_OF_PYTHON = "no plugin serves the scheme; give the option in [filesystems] of the configuration"
_reported: set[tuple[str, str]] = set()  # scheme and option


class IgnoredOptionWarning(UserWarning):
    """A storage option that tunes another client, and that the plugin has no use for.

    Each scheme and option is reported once in a process;
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

    Its variables replace those of this process, None for one that is unset. `library` is the
    plugin's file, None where a Python object serves. A `TypeError` names each option that the
    plugin cannot follow, and what to do instead, and shows no value.
    """
    known = storage_options_of(library or "", scheme)
    given = {
        name: value
        for name, value in _entries(options, known)
        if name not in _OF_FSSPEC and value is not None
    }
    said: dict[str, str] = {}
    switched: dict[str, str | None] = {}
    unmet: list[str] = []
    for name, value in given.items():
        variable = known.variables.get(name)
        is_file = variable in known.files
        if name in known.ignored or _has_no_effect(name, given, known):
            continue
        if name in known.switches and value is True:
            switched |= {other: text or None for other, text in known.switches[name].items()}
        elif name in known.switches:
            unmet.append(f"{name!r}: expected True or False")
        elif variable is None:
            no_setting = "the plugin has no such setting" if library else _OF_PYTHON
            unmet.append(f"{name!r}: {known.advice.get(name) or no_setting}")
        elif not isinstance(value, (str, int, os.PathLike)) or (
            is_file and not os.path.isfile(_text(value))
        ):
            expected = known.files.get(variable, "a text")
            unmet.append(f"{name!r}: expected {expected}, for {variable}")
        else:
            said[variable] = _text_of(variable, value)
    if unmet:
        raise TypeError(f"storage options that {scheme!r} does not follow: {'; '.join(unmet)}")
    _report_ignored(scheme, [name for name in given if name in known.ignored], known)
    of_process = {name: os.environ.get(name) for name in said}
    if not switched and all(
        text is not None and _text_of(name, text) == said[name] for name, text in of_process.items()
    ):
        return {}
    unset = {other for name in said for other in known.unset_with.get(name, ())} - said.keys()
    return {**dict.fromkeys(unset & os.environ.keys()), **switched, **said}


def public_part(environment: Mapping[str, str | None]) -> str:
    """Return a text that differs between the environments of two accounts, without a secret."""
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


def _has_no_effect(name: str, given: Mapping[str, Any], known: StorageOptions) -> bool:
    """Return whether an option means what the plugin does anyway.

    This holds for a switch for TLS that agrees with the scheme of the endpoint's URL.
    """
    value = given[name]
    if name in known.switches and value is False:
        return True
    if value in known.without_effect.get(name, ()):
        return True
    endpoint = known.said_by_endpoint.get(name)
    if endpoint is None or not isinstance(value, bool):
        return False
    urls = [str(given[one]) for one in given if known.variables.get(one) == endpoint]
    url = (urls[-1] if urls else "") or os.environ.get(endpoint, "")
    return url.startswith("https://" if value else "http://")


def _report_ignored(scheme: str, names: list[str], known: StorageOptions) -> None:
    """Warn once in a process of options that are of no use to a plugin."""
    new = [name for name in names if (scheme, name) not in _reported]
    _reported.update((scheme, name) for name in new)
    if new:
        advice = known.advice
        each = (f"{n!r} ({advice[n]})" if n in advice else repr(n) for n in new)
        text = f"{scheme!r} ignores storage options that tune another client: {', '.join(each)}"
        warnings.warn(text, IgnoredOptionWarning, stacklevel=2)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _text_of(variable: str, value: Any) -> str:
    """Return the text of a variable; of two spellings of an endpoint one, and a secret whole."""
    return _text(value).rstrip("/") if variable.endswith("ENDPOINT") else _text(value)
