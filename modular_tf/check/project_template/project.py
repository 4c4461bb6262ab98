"""The project that a plugin author begins with: its names, and writing it, whole or not at all."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import modular_tf
from modular_tf.abi.registered_names import TENSORFLOW_DEVICE_NAME
from modular_tf.errors import InvalidArgumentError
from modular_tf.filesystem.uri import scheme_of
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KINDS", "ProjectNames", "project_names", "render_project", "write_project"]

KINDS = ("filesystem", "device")
"""The kinds of plugins that there are projects for."""

_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_SUFFIX = ".in"  # so that no tool takes a template for what it will be
_PLACEHOLDER = re.compile(r"@([A-Z]+(?:_[A-Z]+)*)@")
_SOURCE = re.compile(r"[A-Za-z0-9./](?:[^'\"{}`$\\\s]| @ )*")  # for YAML, TOML and a shell
_ENTRY_POINTS = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin; TF_InitKernel"}


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


def project_names(
    kind: str, name: str, *, scheme: str | None = None, device_type: str | None = None
) -> ProjectNames:
    """Return the names of a project of one of `KINDS`, which its author calls `name`: `my-store`.

    The scheme of a filesystem is by default the name in small letters, without - and _; the type of
    a device is the name in capitals, with _ for -.

    Raises:
        InvalidArgumentError: One of them cannot be a name of that kind, or is taken.
    """
    if kind == "filesystem" and device_type is not None:
        raise InvalidArgumentError("a filesystem has a scheme, no type: give --scheme")
    if kind == "device" and scheme is not None:
        raise InvalidArgumentError("a device has a type, no scheme: give --type")
    if not _PROJECT.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} cannot be the name of a project: a letter must begin it, then letters and "
            "digits, with single - or _ between them"
        )
    _require_free("projects", name.lower().replace("_", "-"), "--directory says where it goes")
    if kind == "filesystem":
        registered = re.sub("[-_]", "", name).lower() if scheme is None else scheme
        if not registered or scheme_of(f"{registered}://") != registered:
            raise InvalidArgumentError(
                f"{registered!r} cannot be a scheme: hosts find schemes of a letter, then one or "
                "more letters, digits and dots; give another with --scheme"
            )
        _require_free("schemes", registered.lower(), "give another with --scheme")
    else:
        registered = name.upper().replace("-", "_") if device_type is None else device_type
        if not TENSORFLOW_DEVICE_NAME.fullmatch(registered):
            raise InvalidArgumentError(
                f"{registered!r} cannot be a device type: hosts take capital letters A to Z and _ "
                "after the first; give another with --type"
            )
        _require_free("device_types", registered, "give another with --type")
    return ProjectNames(kind, name, name.lower().replace("-", "_"), registered)


def _require_free(what: str, name: str, remedy: str) -> None:
    if name in read_table("check/project_template/taken_names.toml")[what]:
        raise InvalidArgumentError(f"{name!r} is taken already; {remedy}")


def write_project(
    names: ProjectNames, directory: str, install_from: str | None = None
) -> tuple[str, ...]:
    """Write a project into a directory that does not exist yet; return its files, sorted.

    It appears whole: it is made beside its place and renamed. See `render_project` for
    `install_from`; the files are relative to the directory.

    Raises:
        FileExistsError: There is something already.
        OSError: It cannot be written.
        InvalidArgumentError: pip cannot install modular_tf from there in continuous integration.
    """
    if os.path.lexists(directory):
        raise FileExistsError(errno.EEXIST, "it exists already", directory)
    parent = os.path.dirname(os.path.abspath(directory))
    if not os.path.isdir(parent):
        raise FileNotFoundError(errno.ENOENT, "no directory to write the project into", parent)
    files = render_project(names, install_from)
    scratch = tempfile.mkdtemp(prefix=".new-", dir=parent)
    try:
        made = os.path.join(scratch, "project")  # with the permissions that directories get here
        for name, content in files.items():
            path = os.path.join(made, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(content)
        os.rename(made, directory)
    finally:
        shutil.rmtree(scratch)
    return tuple(files)


def render_project(names: ProjectNames, install_from: str | None = None) -> dict[str, str]:
    """Return the content of a project's files by their names, sorted. [any thread]

    `install_from` is what pip installs as modular_tf: a requirement, a URL, or the path of a
    checkout in the project; None for this version from an index.

    Raises:
        InvalidArgumentError: pip cannot install modular_tf from there in continuous integration.
    """
    this_version = f"modular_tf>={modular_tf.__version__}"
    source = this_version if install_from is None else install_from
    if not _SOURCE.fullmatch(source):
        raise InvalidArgumentError(f"{source!r} is nothing that pip could install modular_tf from")
    if os.path.isabs(source):
        raise InvalidArgumentError(
            f"{source!r} is a path of this machine, which continuous integration lacks: give a "
            "URL, or the path of a checkout in the project"
        )
    requirement = source  # of the build of a wheel, which does not know paths in the project
    if not source.startswith("modular_tf"):
        requirement = f"modular_tf @ {source}" if "://" in source else this_version
    templates = dict(_templates("either")) | dict(_templates(names.kind))
    sources = sorted(name for name in templates if name.endswith(".cc"))
    values = {
        "NAME": names.project,
        "KIND": names.kind,
        "LIBRARY": names.library,
        "SCHEME": names.registered,
        "DEVICE_TYPE": names.registered,
        "ENTRY_POINT": _ENTRY_POINTS[names.kind],
        "SOURCES": "".join(f"\n  {name}" for name in sources),
        "MODULAR_TF": source,
        "REQUIREMENT": requirement,
    }
    return {
        name: _PLACEHOLDER.sub(lambda found: values[found[1]], templates[name])
        for name in sorted(templates)
    }


def _templates(folder: str) -> Iterator[tuple[str, str]]:
    top = os.path.join(_TEMPLATES, folder)
    for directory, _, names in os.walk(top):
        for name in fnmatch.filter(names, f"*{_SUFFIX}"):
            path = os.path.join(directory, name)
            with open(path, encoding="utf-8") as stream:
                yield os.path.relpath(path, top).removesuffix(_SUFFIX), stream.read()
