"""Plugins by their own slots, as the conformance kit calls them: nothing of the host between."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

from modular_tf.check.device.session import DeviceLibrary, DeviceSession
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from modular_tf.check.device.workspace import Workspace


@contextmanager
def raw_device(library: str | Path, ordinal: int = 0) -> Iterator[Workspace]:
    """Make one device; what is made by its methods is destroyed with it."""
    session = DeviceSession(Target(str(library), "device", Pass.RAW, ordinal=ordinal))
    try:
        with session.workspace(SimpleNamespace(id="contrib")) as workspace:
            yield workspace
    finally:
        session.close()


def raw_library(library: str | Path) -> DeviceLibrary:
    """Return a library before any device of it is made."""
    return DeviceLibrary(Target(str(library), "device", Pass.LIBRARY))
