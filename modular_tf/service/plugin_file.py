"""The library of a plugin as it is to be mapped: which files, judged when, in which way."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.discovery.kinds import Kind
    from modular_tf.discovery.trust.policy import TrustPolicy


class PluginFile(NamedTuple):
    """What is mapped for a plugin.

    Attributes:
        plugin: The plugin's name for users.
        path: Its library.
        kinds: What it brings.
        companions: Libraries that it brings along, those that others need first.
        absent: Functions that it asks for and nobody has.
        bundled: Whether it comes with this package.
        sha256: Of its bytes, in hexadecimal digits, None where they could not be read.
        checked: The files as they were when they were found to be trustworthy.
        sealed: Whether to map copies that nobody can write to.
        trust: What is decided about trust, for what is mapped with it beside the files; None to
            judge nothing more.
    """

    plugin: str
    path: str
    kinds: frozenset[Kind]
    companions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    bundled: bool = False
    sha256: str | None = None
    checked: tuple[SeenFile, ...] | None = None
    sealed: bool = False
    trust: TrustPolicy | None = None


def unmarked(file: PluginFile) -> AbstractContextManager[object]:
    """Surround the loading of a plugin with nothing."""
    del file
    return nullcontext()
