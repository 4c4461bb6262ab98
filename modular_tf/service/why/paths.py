"""Facts about a file or a directory."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from modular_tf.device.names import parse_device_name
from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.user_directories import expand_home
from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.filesystem.scheme import scheme_of
from modular_tf.service.why.answer import ABSENT, STATE, Fact
from modular_tf.service.why.plugins import HAVE_IT_SEARCHED, about_plugin, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.service import PluginService


def about_path(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about the file or directory with a name, if it looks like a path."""
    if not _exists(name) and (os.sep not in name or scheme_of(name) or _is_device_name(name)):
        return
    path = os.path.abspath(expand_home(name) or name)
    if not _exists(path):
        yield from _missing(path)
        return
    with suppress(ModularTFError):  # a directory of several, or of none
        service.entry(path)
    if os.path.isdir(path):
        yield from _directory(service, path)
    else:
        yield from _file(service, path)


def _is_device_name(name: str) -> bool:
    try:
        parse_device_name(name)
    except InvalidArgumentError:
        return False
    return True


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a NUL, half of a surrogate pair: no file can have that name
        return False


def _missing(path: str) -> Iterator[Fact]:
    subject = f"path {path}"
    yield Fact(subject, ABSENT, f"{path} does not exist")
    parent, base = os.path.split(path)
    if not os.path.isdir(parent):
        yield Fact(subject, "suggestion", f"nor is there a directory {parent}")
        return
    try:
        names = sorted(os.listdir(parent))
    except OSError as error:
        yield Fact(subject, "problem", f"{parent} cannot be listed: {error.strerror}")
        return
    for near in get_close_matches(base, names):
        yield Fact(subject, "suggestion", f"there is {os.path.join(parent, near)}")


def _file(service: PluginService, path: str) -> Iterator[Fact]:
    real = real_path(path)
    for record in service.plugins():
        if record.path and real_path(record.path) == real:
            yield from about_plugin(service, record)


def _directory(service: PluginService, path: str) -> Iterator[Fact]:
    subject = f"path {path}"
    real = real_path(path)
    records = [r for r in service.plugins() if r.path and _folder(r.path) == real]
    n_libraries = f"{len(records)} {'library' if len(records) == 1 else 'libraries'}"
    yield Fact(subject, STATE, f"{path} is a directory with {n_libraries}")
    for record in records:
        yield outcome(subject, "holds", record)
    if not records:
        yield from _why_empty(subject, path)
    places = [p for p in service.report().searched if real_path(p.path) == real]
    for place in places:
        yield Fact(subject, "source", f"searched as {place.source}: {place.origin}")
    if not places:
        yield Fact(subject, "source", "no source searches it", None, HAVE_IT_SEARCHED)


def _folder(path: str) -> str:
    return real_path(os.path.dirname(path))


def _why_empty(subject: str, path: str) -> Iterator[Fact]:
    try:
        names = os.listdir(path)
    except OSError as error:
        yield Fact(subject, "problem", f"it cannot be listed: {error.strerror}")
        return
    n_others = sum(not is_plugin_file_name(name) for name in names)
    text = f"of a directory, files that end in .so or .so.N count; it has {n_others} others"
    yield Fact(subject, "next", text)
