"""Checks of a plugin's file, and of what loading it does to the process."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.check import LIBRARY, LOADS, NOTE, REGISTERS, WARNING, Suite
from modular_tf.check.expectation import Blocked, Deviation, expect
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.linking.symbol_families import SymbolFamily, family_of, readable_name
from modular_tf.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.library_session import FilesystemLibrary
    from modular_tf.discovery.probe import ElfFacts
    from modular_tf.first_contact.finding import Finding

library = Suite("library", "library", level=LOADS, ways=LIBRARY)

_FILE_RULES = "LD-001 LD-002 LD-003 LD-004 LD-005 LD-006 LD-007 LD-008 LD-009 LD-010 LD-011 LD-012"
"""Where one of them is broken, those after it cannot be judged, nor how the file is linked."""

_API_PREFIXES = ("TF_", "TFE_", "TSL_")
_TENSORFLOW_NAMESPACES = ("tensorflow", "tsl")
_SHOWN = 5
_SLOW_S = 3


@library.check("LD-001")
def the_path_exists(plugin: FilesystemLibrary) -> None:
    """Look for it; a link that leads nowhere is there."""
    path = plugin.target.path
    expect(os.path.lexists(path), f"{path} does not exist")


@library.judge(_FILE_RULES.removeprefix("LD-001 "), "LD-013 LD-014 LD-015 LD-016 LD-017")
def _file_keeps_the_rule(rule_id: str, plugin: FilesystemLibrary) -> None:
    """Ask the probe."""
    if not os.path.lexists(plugin.target.path):
        raise Blocked("there is no such file", "LD-001")
    problems = plugin.probe.problems
    hiding = _FILE_RULES.partition(rule_id)[0].split()
    for problem in problems:
        if problem.is_error and problem.rule_id in hiding:
            raise Blocked("this cannot be checked", problem.rule_id)
    for problem in problems:
        if problem.rule == rule_id:
            raise Deviation(problem.message, expected=problem.remedy or "")


@library.check("FS-103", kind="filesystem", level=REGISTERS, severity=WARNING)
def c_functions_only(plugin: FilesystemLibrary) -> None:
    """The library asks TensorFlow for functions of its C API alone.

    Otherwise: C++ functions change with each release of TensorFlow: the plugin serves one release.
    Remedy: Call the C functions of the plugin headers, and link nothing of TensorFlow's C++.
    Source: filesystem.h; plugins-in-the-wild
    """
    facts = _require_facts(plugin)
    inside = [
        readable
        for symbol in facts.undefined
        if family_of(symbol) is SymbolFamily.TENSORFLOW_CXX
        and (readable := readable_name(symbol.name)).partition("::")[0] in _TENSORFLOW_NAMESPACES
    ]
    found = f"{_some(inside)}; needed: {', '.join(facts.needed) or 'nothing'}"
    expect(
        not inside,
        f"{len(inside)} imported symbols are of TensorFlow's C++",
        expected="functions of the C API alone",
        found=found,
    )


@library.check("FS-104", kind="filesystem", level=REGISTERS, severity=WARNING)
def no_copy_of_the_interface(plugin: FilesystemLibrary) -> None:
    """The library exports no functions of TensorFlow's C API.

    Otherwise: A library that binds to them has two kinds of TF_Status in one process, and crashes.
    Remedy: Do not link TensorFlow into the plugin; hide all symbols but TF_InitPlugin.
    Source: ld.so(8), symbol lookup
    """
    _require_facts(plugin)
    with ElfFile(plugin.target.path) as elf:
        exported = elf.exports()
    own = sorted(
        name for name in exported & host_exports().symbols if name.startswith(_API_PREFIXES)
    )
    expect(
        not own,
        f"{len(own)} functions of TensorFlow's C API are exported",
        expected="TF_InitPlugin alone",
        found=_some(own),
    )


@library.check("FS-131", kind="filesystem", severity=NOTE)
def mapping_is_quiet_and_fast(plugin: FilesystemLibrary) -> None:
    """Mapping the library prints nothing, starts no thread and takes less than 3 seconds.

    Otherwise: The application that merely looks for plugins pays for it.
    Remedy: Leave the work to the `init` of the scheme, or to its first use.
    Source: host recommendation
    """
    plugin.require_loadable()
    trial = plugin.trial
    if not trial.mapped:
        raise Blocked("the library cannot be mapped", "LD-050")
    expect(not trial.words, "mapping the library prints", found=repr(trial.words))
    expect(not trial.threads, "mapping the library starts threads", found=str(trial.threads))
    expect(trial.seconds < _SLOW_S, "mapping the library is slow", found=f"{trial.seconds:.1f} s")


@library.judge("LD-050")
def can_be_mapped(rule_id: str, plugin: FilesystemLibrary) -> None:
    """Map it, which runs its constructors."""
    plugin.require_loadable()
    with breaks_nothing_but(rule_id):
        plugin.map()


@contextmanager
def breaks_nothing_but(rule_id: str) -> Iterator[None]:
    """Demand that an error within the block breaks another rule, which blocks the check."""
    try:
        yield
    except PluginError as error:
        if error.rule != rule_id:
            raise Blocked(error.message, error.rule) from error
        raise Deviation(error.message) from error


def _require_facts(plugin: FilesystemLibrary) -> ElfFacts:
    facts = plugin.probe.elf
    if facts is None:
        raise Blocked("the file cannot be read as a library", *plugin.broken_rules)
    return facts


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


first_contact = Suite("library", "first-contact", level=REGISTERS, ways=LIBRARY, seconds=90)

_ENDS = ("LD-060", "LD-061")
"""What comes after one of them is not known."""

_CANNOT_TRY = "LD-063"
_RULES = "LD-060 LD-061 LD-062 LD-064 LD-065 LD-066 LD-067 LD-068 LD-069 LD-120 LD-121 LD-122"
_NAMED = re.compile(r"\((LD-\d{3})\)")


@first_contact.judge(_RULES)
def _loading_keeps_the_rule(rule_id: str, plugin: FilesystemLibrary) -> None:
    """Ask first contact."""
    broken = dict(_broken(plugin.first_contact()))
    if rule_id in broken:
        raise Deviation(broken[rule_id])
    hiding = [other for other in (*_ENDS, _CANNOT_TRY) if other in broken]
    if hiding:
        raise Blocked(f"loading it was not finished: {broken[hiding[0]]}", hiding[0])


def _broken(found: Finding) -> Iterator[tuple[str, str]]:
    """Yield the rules that were broken, with what was found; the gravest last."""
    for note in found.notes:
        if note.rule_id and note.rule_id in _RULES:
            yield note.rule_id, note.message
    if found.incident is not None:
        violation = found.incident.violation
        for rule_id in (*_NAMED.findall(violation.message), violation.rule_id):
            yield rule_id, violation.message
