"""One check: a rule, and a function that tries whether a plugin keeps it, in one place."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import partial
from inspect import cleandoc, getsource
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass
from modular_tf.rules import Rule, Severity, loader_rules, rule

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = frozenset({Pass.RAW, Pass.HOST})
RAW = frozenset({Pass.RAW})
HOST = frozenset({Pass.HOST})
LIBRARY = frozenset({Pass.LIBRARY})

LOADS, REGISTERS, WORKS, ROBUST, HARD = Level
ERROR, WARNING, NOTE = Severity

_PART = re.compile(r"^(Otherwise|Remedy|Source): ", re.MULTILINE)

F = TypeVar("F", bound="Callable[..., None]")


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, and how a plugin is tried on it.

    Attributes:
        id: Of its rule, which states requirement, consequence, remedy, source and severity.
        kind: What it is tried on: a `filesystem`, `device` or `kernel` plugin, or the `library` of
            any of them.
        level: From which level on it is tried.
        group: Which checks share a process with it, such as `reading`.
        ways: In which ways it is tried.
        run: Tries it, on a `FilesystemWorkspace` or the like. It returns where the rule is kept,
            and raises `Deviation`, `Unsupported` or `Blocked` where not.
        needs: Slots that must be there; without one it is skipped in the raw pass.
        traits: What it assumes of a store, such as `parents`: a profile may say that this kind of
            store has no such thing.
        seconds: How long it may take.
        place: What kind of place it needs, and which setting gives it one; "" for any place.
    """

    id: str
    kind: str
    level: Level
    group: str
    ways: frozenset[Pass]
    run: Callable[[Any], None]
    needs: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    seconds: float = 30.0
    place: str = ""

    @property
    def rule(self) -> Rule:
        """The rule that it tries."""
        return rule(self.id)


@dataclass
class Suite:
    '''The checks of one subject, in the order in which they stand in their module.

    A check is a function whose docstring states its rule, unless it is a rule of the loader::

        @suite.check("FS-222", "delete_file", traits="writes directories")
        def a_directory_is_no_file(fs: FilesystemWorkspace) -> None:
            """delete_file of a directory is FAILED_PRECONDITION, and the directory stays.

            Otherwise: A whole directory goes where one file was meant.
            Remedy: Look at the kind of the entry, and set TF_FAILED_PRECONDITION.
            Source: filesystem.h, delete_file

            What follows is for readers of the code.
            """

    The suite's `kind`, `group`, `level`, `ways`, `traits` (words) and `seconds` are those of each
    check that names no others; see `Check`. Its `source` is where rules without a `Source:` come
    from: `{slot}` stands for the first slot that the check needs.
    '''

    kind: str
    group: str
    level: Level = WORKS
    ways: frozenset[Pass] = BOTH
    traits: str = ""
    seconds: float = 30.0
    source: str = ""
    checks: list[Check] = field(default_factory=list)

    def check(
        self,
        rule_id: str,
        *needs: str,
        severity: Severity = ERROR,
        rule: tuple[str, str, str, str] | None = None,
        traits: str | None = None,
        **named: Any,
    ) -> Callable[[F], F]:
        """Make a function the check of a rule.

        Args:
            rule_id: Of the rule.
            *needs: See `Check`.
            severity: Of the rule, where it is none of the loader.
            rule: Requirement, consequence, remedy and source of a rule that no docstring states.
            traits: See `Check`; words.
            **named: What else of `Check` is not the suite's.
        """

        def make(run: F) -> F:
            if rule_id not in loader_rules():
                requirement, consequence, remedy, source = rule or _stated(rule_id, run)
                usual = self.source.format(slot=needs[0] if needs else "")
                Rule(rule_id, requirement, consequence, remedy, source or usual, severity)
            own = {name: getattr(self, name) for name in ("kind", "level", "ways", "seconds")}
            words = frozenset((self.traits if traits is None else traits).split())
            made = Check(
                rule_id, group=self.group, run=run, needs=needs, traits=words, **own | named
            )
            self.checks.append(made)
            return run

        return make

    def judge(self, *rule_ids: str, **named: Any) -> Callable[[F], F]:
        """Make a function the check of many rules of the loader; it is given the id first.

        Args:
            *rule_ids: One or more in each, as words.
            **named: See `check`.
        """

        def make(run: F) -> F:
            for rule_id in " ".join(rule_ids).split():
                self.check(rule_id, **named)(partial(run, rule_id))
            return run

        return make


def _stated(rule_id: str, run: Callable[..., None]) -> tuple[str, str, str, str]:
    """Return requirement, consequence, remedy and source, "" for none, that a docstring states.

    Raises:
        ValueError: It states no rule.
    """
    text = cleandoc(run.__doc__ or _docstring_in_source(run))
    requirement, stated, *_ = [*text.split("\n\n"), "", ""]
    _, *pieces = _PART.split(stated)
    parts = {name: _joined(piece) for name, piece in zip(pieces[::2], pieces[1::2], strict=True)}
    if not (requirement and {"Otherwise", "Remedy"} <= parts.keys()):
        raise ValueError(
            f"the docstring of the check {rule_id} must state its rule in a sentence, and then"
            f" Otherwise: and Remedy:; found {text!r}"
        )
    return _joined(requirement), parts["Otherwise"], parts["Remedy"], parts.get("Source", "")


def _docstring_in_source(run: Callable[..., None]) -> str:
    """Read a docstring which the interpreter has left out, as `python -OO` does."""
    # `ast.parse` of Python 3.14 and later leaves it out too.
    source = dedent(getsource(run))
    tree = compile(source, "<check>", "exec", flags=ast.PyCF_ONLY_AST, optimize=0)
    function = next(ast.iter_child_nodes(tree))
    return (isinstance(function, ast.FunctionDef) and ast.get_docstring(function)) or ""


def _joined(text: str) -> str:
    return " ".join(text.split())
