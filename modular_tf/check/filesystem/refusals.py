"""Checks whose substance is a call, the code that refuses it, and what stays, as rows."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.abi.status_codes import Code
from modular_tf.check.filesystem.workspace import (
    CONTENT,
    expect_content,
    expect_directory,
    expect_missing,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.check import Suite
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

EXISTS, INVALID = Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT
MISSING, REFUSED = Code.NOT_FOUND, Code.FAILED_PRECONDITION

TENSORFLOW = "TensorFlow's test of filesystem plugins"
"""The source of many of these rules."""

_WORDS = {
    "F": "a file", "G": "a file", "E": "an empty file", "D": "a directory",
    "N": "a directory with a file in it", "F/x": "a name below a file", "X": "a missing name",
    "Y": "a new name", "X/y": "a name in a missing directory",
}  # fmt: skip
_STAYS = {"F": "the file stays", "G": "the file stays", "D": "the directory stays",
          "N/file": "all stays"}  # fmt: skip
_MADE = {"F": "make_file", "G": "make_file", "E": "make_empty_file", "D": "make_dir",
         "N": "make_full_dir"}  # fmt: skip
_CALL = re.compile(r"(\w+)\(([^)]*)\)")
_WRONG = "Callers distinguish cases by the code: they take the wrong branch, or give up."
_REMEDIES = {
    MISSING: "Set TF_NOT_FOUND where the name is missing, or a directory that would hold it.",
    REFUSED: "Look at the kind of the entry and of its parents, and set TF_FAILED_PRECONDITION; for"
    " ENOTDIR TF_SetStatusFromIOError does so.",
    EXISTS: "Set TF_ALREADY_EXISTS, and change nothing.",
}


class Refusal(NamedTuple):
    """A row: calls that are refused by a code.

    Attributes:
        calls: With the letters of a workspace; then `keeps F` for what must still be there as it
            was, `without Y` for what must not be there: `rename_file(X, Y) without Y`.
        code: The code of each of them.
        traits: See `Check`; words.
        consequence: Of its rule; usually that callers cannot distinguish cases.
        remedy: Of its rule; usually by the code.
    """

    calls: str
    code: Code
    traits: str
    consequence: str = _WRONG
    remedy: str = ""

    @property
    def each(self) -> list[tuple[str, list[str]]]:
        """Each call: the slot, and the letters of its paths."""
        return [(slot, paths.split(", ")) for slot, paths in _CALL.findall(self.calls)]

    def named_after(self, word: str) -> list[str]:
        """The letters after `keeps` or `without`."""
        return re.findall(rf" {word} (\S+)", self.calls)

    @property
    def requirement(self) -> str:
        """What its rule requires, in a sentence."""
        first, *more = (" to ".join(_WORDS[one] for one in paths) for _, paths in self.each)
        whom = first + "".join(f", or of {one}," for one in more)
        stays = "".join(f", and {_STAYS[one]}" for one in self.named_after("keeps"))
        nothing = ", and nothing appears" if self.named_after("without") else ""
        return f"{self.each[0][0]} of {whom} is {self.code.name}{stays}{nothing}."


def refusals(
    suite: Suite, rows: Mapping[str, tuple[str, Code, str] | tuple[str, Code, str, str, str]],
    source: str = "",
) -> None:  # fmt: skip
    """Add a check for each row; see `Refusal` for what is in one.

    Args:
        suite: Of the checks.
        rows: By the ids of their rules.
        source: Of the rules, where it is not the suite's.
    """
    for rule_id, row in rows.items():
        one = Refusal(*row)
        rule = (one.requirement, one.consequence, one.remedy or _REMEDIES[one.code], source)
        suite.check(rule_id, one.each[0][0], rule=rule, traits=one.traits)(partial(is_refused, one))


def is_refused(row: Refusal, fs: FilesystemWorkspace) -> None:
    """Make what the calls name, make the calls, and look at what must be left."""
    uris: dict[str, str] = {}

    def uri(name: str) -> str:
        parent, _, child = name.partition("/")
        if name not in uris:
            made = f"{uri(parent)}/{child}" if child else getattr(fs, _MADE.get(name, "path"))(name)
            uris[name] = made
        return uris[name]

    for slot, paths in row.each:
        getattr(fs, slot)(*map(uri, paths)).must_be(row.code)
    for name in row.named_after("keeps"):
        if name == "D":
            expect_directory(fs, uri(name), f"{name} is no directory after {row.calls}")
        else:
            expect_content(fs, uri(name), CONTENT, f"the content of {name} after {row.calls}")
    for name in row.named_after("without"):
        expect_missing(fs, uri(name), f"the refused {row.calls} left {name}")
