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
from modular_tf.loading.published import canonical_scheme, known_packages, package_for
from modular_tf.service.why.answer import ABSENT, STATE, Explanation, Fact
from modular_tf.service.why.subjects import (
    HAVE_IT_SEARCHED,
    about_device,
    about_distribution,
    about_op,
    about_plugin,
    about_scheme,
    device_named,
    may_be_op,
    outcome,
    plugins_of_distribution,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.service.report import PluginRecord
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
        return
    real = real_path(path)
    for record in service.plugins():
        if record.path and real_path(record.path) == real:
            yield from about_plugin(service, record)


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
        try:
            n_others = sum(not is_plugin_file_name(name) for name in os.listdir(path))
        except OSError as error:
            yield Fact(subject, "problem", f"it cannot be listed: {error.strerror}")
        else:
            text = "of a directory, files that end in .so or .so.N count"
            yield Fact(subject, "next", f"{text}; it has {n_others} others")
    places = [p for p in service.report().searched if real_path(p.path) == real]
    for place in places:
        yield Fact(subject, "source", f"searched as {place.source}: {place.origin}")
    if not places:
        yield Fact(subject, "source", "no source searches it", None, HAVE_IT_SEARCHED)


# -- an unknown name -------------------------------------------------------------------------------


_MOST_IDLE = 5
_LEAST_ALIKE = 0.75  # GPU and CPU are 0.67, and mean different things


def about_absence(service: PluginService, scheme: str) -> Iterator[Fact]:
    """Yield facts about an unknown name or scheme: similar names, packages, unused directories."""
    subject = f"name {scheme}"
    kinds = "no plugin, file, scheme, device type, distribution or operation"
    text = f"nothing is named {scheme!r}: {kinds}" if scheme else "no plugin serves local paths"
    yield Fact(subject, ABSENT, text)
    yield from _scheme(service, subject, scheme)
    yield from _near(service, subject, scheme)
    yield from _while_searching(service, subject)


def _scheme(service: PluginService, subject: str, scheme: str) -> Iterator[Fact]:
    proper = canonical_scheme(scheme)
    if proper != scheme:
        text = f"what other programs call {scheme}:// is {proper}:// here"
        if proper == scheme.lower():
            text = f"upper and lower case differ in schemes, and this one is {proper}://"
        owner = service.owner(proper)
        yield Fact(subject, "suggestion", f"{text}, served by {owner}" if owner else text)
        if owner:
            return
    package = package_for(proper)
    if package is not None:
        text = f"scheme {proper!r} comes with the package {package.name}"
        if brought := plugins_of_distribution(service, package.name):
            yield Fact(subject, "package", f"{text}, which is installed")
            yield from (outcome(subject, "package", record) for record in brought)
        else:
            yield Fact(subject, "package", text, None, package.install)
    if step := service.next_step(proper):
        yield Fact(subject, "next", step)


def _near(service: PluginService, subject: str, name: str) -> Iterator[Fact]:
    """Yield similar names; those that differ by case only come first."""
    known = _known_names(service, name)
    canonical = canonical_scheme(name)
    same = [given for given in known if given.lower() == name.lower() and given != canonical]
    for given in same:
        text = f"there is {known[given]} {given}; upper and lower case differ"
        yield Fact(subject, "suggestion", text)
    if same or canonical != name or name in known:  # known, but not served here
        return
    by_lower_case = {given.lower(): given for given in known}
    for near in get_close_matches(name.lower(), by_lower_case, n=3, cutoff=_LEAST_ALIKE):
        given = by_lower_case[near]
        yield Fact(subject, "suggestion", f"did you mean {known[given]} {given}?")


def _known_names(service: PluginService, name: str) -> dict[str, str]:
    """Return all known names that one may be meant for, each with what it names."""
    known = {record.name: "plugin" for record in service.plugins()}
    known |= {package.name: "the package" for package in known_packages()}
    known |= {scheme: "scheme" for package in known_packages() for scheme in package.schemes}
    known |= {scheme: "scheme" for scheme in service.schemes() if scheme}
    statuses = service.device_registry.factories()
    types = (status.registration.factory.device_type for status in statuses)
    known |= dict.fromkeys(types, "device type")
    ops = service.kernel_registry.op_names() if may_be_op(name) else ()
    return dict.fromkeys(ops, "operation") | known


def _while_searching(service: PluginService, subject: str) -> Iterator[Fact]:
    report = service.report()
    for problem in report.problems:
        yield Fact.of(subject, problem, "problem")
    for failure in report.hook_failures:
        yield Fact(subject, "problem", f"in a hook: {failure.message}")
    # The name may be one of the plugins that serve nothing.
    idle = [record for record in report.plugins if record.reason and not _serves(record)]
    yield from (outcome(subject, "problem", record) for record in idle[:_MOST_IDLE])
    if len(idle) > _MOST_IDLE:
        text = f"{len(idle) - _MOST_IDLE} more plugins serve nothing; `modular-tf list` has them"
        yield Fact(subject, "problem", text)
    for place in report.searched:
        hits = f"{place.hits} {'library' if place.hits == 1 else 'libraries'}"
        found = hits if place.exists else "does not exist"
        text = f"{place.source}: {place.path} ({place.origin}): {place.ignored or found}"
        yield Fact(subject, "searched", text)


def _serves(record: PluginRecord) -> bool:
    return bool(record.schemes or record.device_types or record.kernels)
