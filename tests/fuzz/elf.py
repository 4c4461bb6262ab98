"""Target: the reader of ELF files, against pyelftools."""

from __future__ import annotations

import re

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError
from tests.fuzz.elf_bases import bases
from tests.fuzz.elf_damage import damaged
from tests.fuzz.elf_oracle import Oracle, UnclearError
from tests.fuzz.given_file import path_with

_RULES = {"LD-004", "LD-005", "LD-006", "LD-007", "LD-008"}
_ASKED = ("TF_InitPlugin", "another_export", "dlopen", "no_such_symbol")

# Where our reader is stricter than pyelftools, which trusts what it reads: numbers that no linker
# writes, and what lies outside the segment that is mapped for it.
_STRICTER = re.compile(
    "is built for |leaves its segment|outside all segments|a segment ends at byte|"
    "the segment at address|two segments have different bytes|it has \\d+ dynamic sections|"
    "segments described in|any real library has|the dynamic section (lies at byte|has more than|"
    "does not end in its segment)|its GNU hash table claims|the filter of its GNU hash table is "
    "malformed|its hash table claims|a hash chain|it claims \\d+ symbols|would end at byte|"
    "does not end|symbol versions|strings are longer"
)


def make(dice):
    return damaged(dice.choice(bases()), dice)


def check(given):
    """Ask all that our reader answers, and compare each answer with pyelftools'."""
    try:
        elf = ElfFile(path_with(given))
    except ElfError as error:
        return _refused(error)
    with elf:
        return _compare(elf, given)


def _compare(elf, given):
    try:
        oracle = Oracle(given)
    except UnclearError:
        raise
    except Exception as error:  # noqa: BLE001  (pyelftools fails in every way there is)
        _ask_all(elf)
        return f"opened, pyelftools: {type(error).__name__}"
    kinds = {_compare_one(name, ours, theirs) for name, ours, theirs in _questions(elf, oracle)}
    return next(kind for kind in (*_BY_WEIGHT, "agreed") if kind in kinds)


_BY_WEIGHT = ("LD-005", "unclear", "pyelftools fails")


def _compare_one(name, ours, theirs):
    try:
        answer = ours()
    except ElfError as error:
        _require_stated(error, theirs)
        return _refused(error)
    try:
        expected = theirs()
    except UnclearError:
        return "unclear"
    except Exception:  # noqa: BLE001  (likewise)
        return "pyelftools fails"
    assert answer == expected, f"{name}: ours {answer!r}, pyelftools {expected!r}"
    return "agreed"


def _questions(elf, oracle):
    dynamic = elf.dynamic
    questions = [
        ("machine", lambda: elf.image.machine_number, oracle.machine),
        ("soname", lambda: dynamic.soname, oracle.soname),
        ("needed", lambda: dynamic.needed, oracle.needed),
        ("rpath", lambda: dynamic.rpath, lambda: oracle.paths("DT_RPATH")),
        ("runpath", lambda: dynamic.runpath, lambda: oracle.paths("DT_RUNPATH")),
        ("binds_now", lambda: dynamic.binds_now, oracle.binds_now),
        ("exports", lambda: set(elf.exports()), oracle.exports),
        ("undefined", lambda: list(map(tuple, elf.undefined())), oracle.undefined),
        ("needs", lambda: list(map(tuple, elf.version_needs())), oracle.version_needs),
        ("definitions", lambda: set(elf.version_definitions()), oracle.version_definitions),
    ]
    return [*questions, *((f"find {name}", *_finding(elf, oracle, name)) for name in _ASKED)]


def _finding(elf, oracle, name):
    def ours():
        found = elf.find(name)
        return None if found is None else (found.name, found.value, found.size)

    def theirs():
        found = oracle.find(name)
        if found is not None and not found.is_exported:
            raise UnclearError("pyelftools stops at the first symbol of a name")
        return None if found is None else (found.name, found.value, found.size)

    return ours, theirs


def _ask_all(elf):
    """Ask without an oracle: the answer is one, or a stated refusal."""
    dynamic = elf.dynamic
    for question in (
        lambda: (dynamic.soname, dynamic.needed, dynamic.rpath, dynamic.runpath),
        elf.exports,
        elf.undefined,
        elf.version_needs,
        elf.version_definitions,
        lambda: [elf.find(name) for name in _ASKED],
    ):
        try:
            question()
        except ElfError as error:
            _refused(error)


def _refused(error):
    assert error.rule in _RULES, f"no rule stands for it: {error.rule}: {error}"
    assert str(error), "a refusal without a message"
    return error.rule


def _require_stated(error, theirs):
    """Where pyelftools answers and we do not, one of the stated reasons must stand for it."""
    if _STRICTER.search(str(error)):
        return
    try:
        answer = theirs()
    except Exception:  # noqa: BLE001  (neither answers)
        return
    raise AssertionError(f"pyelftools says {answer!r}, ours refuses: {error}")
