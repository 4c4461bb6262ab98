"""Hardware of this machine, detected by files (`visible_hardware.toml`)."""

from __future__ import annotations

import os
import sys
from functools import cache
from glob import glob
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Hardware(NamedTuple):
    """One kind of hardware that plugins exist for.

    Attributes:
        what: What it is, in words.
        device_types: What plugins for it call their devices.
        path: A glob; what it matches shows the hardware.
        says: What the file must hold, None where its being there suffices.
        install: The command that installs a plugin for it, None where no package is known.
    """

    what: str
    device_types: tuple[str, ...]
    path: str
    says: str | None
    install: str | None

    def shown_by(self, root: str = "/") -> str | None:
        """Return the file that shows that the hardware is present, None if none does.

        Args:
            root: The directory that stands in the place of the root.
        """
        for path in sorted(glob(os.path.join(root, self.path.lstrip("/")))):
            if self.says is None or _content(path) == self.says:
                return path
        return None


def hardware_of(device_type: str) -> Iterator[Hardware]:
    """Yield the kinds of hardware with a device type."""
    return (row for row in _rows() if device_type in row.device_types)


@cache
def _rows() -> tuple[Hardware, ...]:
    place = resources.files("modular_tf.service.why").joinpath("visible_hardware.toml")
    return tuple(
        Hardware(
            row["what"], tuple(row["device_types"]), row["path"], row.get("says"),
            row.get("install"),
        )
        for row in tomllib.loads(place.read_text("utf-8"))["hardware"]
    )  # fmt: skip


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(64).strip()
    except OSError:
        return None
