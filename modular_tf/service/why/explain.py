"""Finding out what a name can mean, and collecting the facts about each meaning; files first."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.sources.search_paths import expand_home
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.uri import scheme_of
from modular_tf.service.why.absence import about_absence
from modular_tf.service.why.answer import ABSENT, STATE, Explanation, Fact
from modular_tf.service.why.names import about_device, about_op, about_scheme, device_named
from modular_tf.service.why.plugins import (
    HAVE_IT_SEARCHED,
    about_distribution,
    about_plugin,
    outcome,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.service import PluginService


def explain(service: PluginService, name: str) -> Explanation:
    """Return the explanation of a name: plugin, path, scheme, URI, device, type or distribution.

    Plugins are searched for if they were not yet, and a file that no search found is looked at.
    Nothing is loaded, except for a device with a number: its plugin is asked how many there are;
    and for a name that may be an operation's: plugins with kernels are asked for these.
    """
    if not service.report().searched:
        service.discover()
    scheme = scheme_of(name) or name
    facts = [
        *(
            fact
            for record in service.plugins()
            if name in (record.name, os.path.basename(record.path or ""))
            for fact in about_plugin(service, record)
        ),
        *_about_path(service, name),
        *about_scheme(service, scheme),
        *about_device(service, name),
        *about_distribution(service, name),
        *about_op(service, name),
    ]
    if not facts:
        facts += about_absence(service, scheme)
    known = any(fact.stage == STATE for fact in facts)
    return Explanation(name, known=known, facts=tuple(facts))


def _about_path(service: PluginService, name: str) -> Iterator[Fact]:
    """Yield facts about the file or directory with a name, if it looks like a path."""
    if not _exists(name) and (os.sep not in name or scheme_of(name) or device_named(name)):
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
    records = [
        r for r in service.plugins() if r.path and real_path(os.path.dirname(r.path)) == real
    ]
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


def _why_empty(subject: str, path: str) -> Iterator[Fact]:
    try:
        names = os.listdir(path)
    except OSError as error:
        yield Fact(subject, "problem", f"it cannot be listed: {error.strerror}")
        return
    n_others = sum(not is_plugin_file_name(name) for name in names)
    text = f"of a directory, files that end in .so or .so.N count; it has {n_others} others"
    yield Fact(subject, "next", text)
