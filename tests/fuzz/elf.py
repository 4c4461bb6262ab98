"""Target: the reader of ELF files; whatever the bytes, each question has an answer or a refusal.

That the answers are right is shown by `tests/discovery`, against pyelftools and the linker.
"""

from __future__ import annotations

import os
from functools import cache

from modular_tf.discovery.elf import ElfFile
from modular_tf.errors import ElfError
from tests.fuzz.elf_bases import bases
from tests.fuzz.elf_damage import damaged

_RULES = {"LD-004", "LD-005", "LD-006", "LD-007", "LD-008"}
_QUESTIONS = (
    lambda elf: elf.dynamic,
    lambda elf: elf.exports(),
    lambda elf: elf.undefined(),
    lambda elf: elf.version_needs(),
    lambda elf: elf.version_definitions(),
    lambda elf: [elf.find(name) for name in ("TF_InitPlugin", "dlopen", "no_such_symbol")],
)


def make(dice):
    return damaged(dice.choice(bases()), dice)


def check(given):
    """Ask all that our reader answers."""
    os.ftruncate(_descriptor(), 0)
    os.pwrite(_descriptor(), given, 0)
    try:
        elf = ElfFile(f"/proc/self/fd/{_descriptor()}")
    except ElfError as error:
        return _refused(error)
    with elf:
        kinds = {_asked(elf, question) for question in _QUESTIONS}
    return "LD-005" if "LD-005" in kinds else "answered"


def _asked(elf, question):
    try:
        question(elf)
    except ElfError as error:
        return _refused(error)
    return "answered"


def _refused(error):
    assert error.rule in _RULES, f"no rule stands for it: {error.rule}: {error}"
    assert str(error), "a refusal without a message"
    return error.rule


@cache
def _descriptor():
    """Return a file without a place on disk, rewritten for each input."""
    return os.memfd_create("fuzzed")
