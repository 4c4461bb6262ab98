"""Facts about an unknown name: packages that bring it, similar names, what was searched."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from modular_tf.loading.published import canonical_scheme, known_packages, package_for
from modular_tf.service.why.answer import ABSENT, Fact
from modular_tf.service.why.names import may_be_op
from modular_tf.service.why.plugins import outcome, plugins_of_distribution, serves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.loading.published import KnownPackage
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

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
        yield from _package(service, subject, proper, package)
    if step := service.next_step(proper):
        yield Fact(subject, "next", step)


def _package(
    service: PluginService, subject: str, scheme: str, package: KnownPackage
) -> Iterator[Fact]:
    text = f"scheme {scheme!r} comes with the package {package.name}"
    brought = plugins_of_distribution(service, package.name)
    if not brought:
        yield Fact(subject, "package", text, None, package.install)
        return
    yield Fact(subject, "package", f"{text}, which is installed")
    for record in brought:
        yield outcome(subject, "package", record)


def _near(service: PluginService, subject: str, name: str) -> Iterator[Fact]:
    """Yield similar names; those that differ by case only come first."""
    known = _known_names(service, name)
    told = canonical_scheme(name)
    same = [given for given in known if given.lower() == name.lower() and given != told]
    for given in same:
        text = f"there is {known[given]} {given}; upper and lower case differ"
        yield Fact(subject, "suggestion", text)
    if same or told != name or name in known:  # known, but not served here
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
    yield from _idle(subject, report.plugins)
    for place in report.searched:
        hits = f"{place.hits} {'library' if place.hits == 1 else 'libraries'}"
        found = hits if place.exists else "does not exist"
        text = f"{place.source}: {place.path} ({place.origin}): {place.ignored or found}"
        yield Fact(subject, "searched", text)


def _idle(subject: str, records: Sequence[PluginRecord]) -> Iterator[Fact]:
    """Yield the plugins that serve nothing: the name may be theirs."""
    idle = [record for record in records if record.reason and not serves(record)]
    for record in idle[:_MOST_IDLE]:
        yield outcome(subject, "problem", record)
    if len(idle) > _MOST_IDLE:
        text = f"{len(idle) - _MOST_IDLE} more plugins serve nothing; `modular-tf list` has them"
        yield Fact(subject, "problem", text)
