"""What the parts of a new project are called, all from the one name that its author gives."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from modular_tf.abi.registered_names import TENSORFLOW_DEVICE_NAME
from modular_tf.errors import InvalidArgumentError
from modular_tf.filesystem.uri import scheme_of
from modular_tf.tables import read_table

__all__ = ["KINDS", "ProjectNames", "project_names"]

KINDS = ("filesystem", "device")
"""The kinds of plugins that there are projects for."""

_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """The names of one project.

    Attributes:
        kind: `filesystem` or `device`.
        project: As given: the distribution, and by default the directory.
        library: The library is `lib<this>.so`.
        registered: The scheme, or the device type, which is the platform's name too.
    """

    kind: str
    project: str
    library: str
    registered: str

    @property
    def users_write(self) -> str:
        """How the user of the plugin names what it serves."""
        return f"{self.registered}://" if self.kind == "filesystem" else f"{self.registered}:0"

    def as_dict(self) -> dict[str, Any]:
        """Return them as JSON knows them."""
        return asdict(self)


def project_names(
    kind: str, name: str, *, scheme: str | None = None, device_type: str | None = None
) -> ProjectNames:
    """Return the names of a project.

    Args:
        kind: One of `KINDS`.
        name: What its author calls it, such as `my-store`.
        scheme: The scheme of a filesystem; by default the name in small letters, without - and _.
        device_type: The type of a device; by default the name in capitals, with _ for -.

    Raises:
        InvalidArgumentError: One of them cannot be a name of that kind, or is taken.
    """
    _require_option_of_its_kind(kind, scheme, device_type)
    _require_project(name)
    if kind == "filesystem":
        registered = re.sub("[-_]", "", name).lower() if scheme is None else scheme
        _require_scheme(registered)
    else:
        registered = name.upper().replace("-", "_") if device_type is None else device_type
        _require_device_type(registered)
    return ProjectNames(kind, name, name.lower().replace("-", "_"), registered)


def _require_option_of_its_kind(kind: str, scheme: str | None, device_type: str | None) -> None:
    if kind == "filesystem" and device_type is not None:
        raise InvalidArgumentError("a filesystem has a scheme, no type: give --scheme")
    if kind == "device" and scheme is not None:
        raise InvalidArgumentError("a device has a type, no scheme: give --type")


def _require_project(name: str) -> None:
    if not _PROJECT.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} cannot be the name of a project: a letter must begin it, then letters and "
            "digits, with single - or _ between them"
        )
    _require_free("projects", name.lower().replace("_", "-"), "--directory says where it goes")


def _require_scheme(scheme: str) -> None:
    if not scheme or scheme_of(f"{scheme}://") != scheme:
        raise InvalidArgumentError(
            f"{scheme!r} cannot be a scheme: hosts find schemes of a letter, then one or more "
            "letters, digits and dots; give another with --scheme"
        )
    _require_free("schemes", scheme.lower(), "give another with --scheme")


def _require_device_type(device_type: str) -> None:
    if not TENSORFLOW_DEVICE_NAME.fullmatch(device_type):
        raise InvalidArgumentError(
            f"{device_type!r} cannot be a device type: hosts take capital letters A to Z and _ "
            "behind the first; give another with --type"
        )
    _require_free("device_types", device_type, "give another with --type")


def _require_free(what: str, name: str, remedy: str) -> None:
    if name in read_table("check/project_template/taken_names.toml")[what]:
        raise InvalidArgumentError(f"{name!r} is taken already; {remedy}")
