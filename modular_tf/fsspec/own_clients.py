"""Warnings about libraries that go past fsspec for some schemes, by `own_clients.toml`."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.service.fsspec_clients import is_installed

if TYPE_CHECKING:
    from collections.abc import Collection

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_told: set[tuple[str, str]] = set()  # module and scheme


class OwnClientWarning(UserWarning):
    """An installed library opens URIs of a scheme by itself, not by fsspec, and so not by a plugin.

    `register(service, warn=False)` does without, and so does
    `warnings.simplefilter("ignore", modular_tf.fsspec.OwnClientWarning)`.
    """


class OwnClient(NamedTuple):
    """One row of `own_clients.toml`.

    Attributes:
        module: The module by which its presence is found out.
        who: What has the client, as the subject of a sentence.
        schemes: The schemes that it has a client for.
        remedy: What to pass so that the plugin is used.
    """

    module: str
    who: str
    schemes: tuple[str, ...]
    remedy: str


def warn_of_own_clients(schemes: Collection[str], stacklevel: int) -> None:
    """Warn of each installed library that has a client of its own for some of `schemes`.

    It is told of each library and scheme once in a process.

    Args:
        schemes: The schemes that plugins now serve.
        stacklevel: How far above this function the line is that the warnings name.
    """
    for client in _own_clients():
        new = [s for s in client.schemes if s in schemes and (client.module, s) not in _told]
        if new and is_installed(client.module):
            uris = ", ".join(f"{scheme}://" for scheme in new)
            message = f"{client.who} opens {uris} past the plugin; to use it, {client.remedy}"
            warnings.warn(message, OwnClientWarning, stacklevel=stacklevel + 1)
            _told.update((client.module, scheme) for scheme in new)


@cache
def _own_clients() -> tuple[OwnClient, ...]:
    text = resources.files("modular_tf.fsspec").joinpath("own_clients.toml").read_text("utf-8")
    return tuple(
        OwnClient(row["module"], row["who"], tuple(row["schemes"]), row["remedy"])
        for row in tomllib.loads(text)["client"]
    )
