"""Writing a new project: the templates with the names in them, all at once or not at all."""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING

import modular_tf
from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from modular_tf.check.project_template.names import ProjectNames

__all__ = ["render_project", "write_project"]

_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_SUFFIX = ".in"  # so that no tool takes a template for what it will be
_PLACEHOLDER = re.compile(r"@([A-Z]+(?:_[A-Z]+)*)@")
_SOURCE = re.compile(r"[A-Za-z0-9./](?:[^'\"{}`$\\\s]| @ )*")  # for YAML, TOML and a shell
_ENTRY_POINTS = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin; TF_InitKernel"}


def write_project(
    names: ProjectNames, directory: str, install_from: str | None = None
) -> tuple[str, ...]:
    """Write a project into a directory that does not exist yet.

    It appears whole: it is made beside its place and renamed.

    Args:
        names: Its names.
        directory: Where; its parent must exist.
        install_from: What pip installs as modular_tf; see `render_project`.

    Returns:
        The files, relative to the directory, sorted.

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
            _write(os.path.join(made, name), content)
        os.rename(made, directory)
    finally:
        shutil.rmtree(scratch)
    return tuple(files)


def render_project(names: ProjectNames, install_from: str | None = None) -> dict[str, str]:
    """Return the content of a project's files by their names, sorted. [any thread]

    Args:
        names: Its names.
        install_from: What pip installs as modular_tf: a requirement, a URL, or the path of a
            checkout in the project; None for this version from an index.

    Raises:
        InvalidArgumentError: pip cannot install modular_tf from there in continuous integration.
    """
    source = _this_version() if install_from is None else install_from
    _require_source(source)
    templates = dict(_templates("either")) | dict(_templates(names.kind))
    values = _values(names, templates, source)
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


def _this_version() -> str:
    return f"modular_tf>={modular_tf.__version__}"


def _require_source(source: str) -> None:
    if not _SOURCE.fullmatch(source):
        raise InvalidArgumentError(f"{source!r} is nothing that pip could install modular_tf from")
    if os.path.isabs(source):
        raise InvalidArgumentError(
            f"{source!r} is a path of this machine, which continuous integration lacks: give a "
            "URL, or the path of a checkout in the project"
        )


def _requirement(source: str) -> str:
    """Return what the build of a wheel requires; a path in the project cannot be told there."""
    if source.startswith("modular_tf"):
        return source
    return f"modular_tf @ {source}" if "://" in source else _this_version()


def _values(names: ProjectNames, templates: Mapping[str, str], source: str) -> dict[str, str]:
    """Return what stands for each placeholder."""
    sources = sorted(name for name in templates if name.endswith(".cc"))
    return {
        "NAME": names.project,
        "KIND": names.kind,
        "LIBRARY": names.library,
        "SCHEME": names.registered,
        "DEVICE_TYPE": names.registered,
        "ENTRY_POINT": _ENTRY_POINTS[names.kind],
        "SOURCES": "".join(f"\n  {name}" for name in sources),
        "MODULAR_TF": source,
        "REQUIREMENT": _requirement(source),
    }


def _write(path: str, content: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="\n") as stream:
        stream.write(content)
