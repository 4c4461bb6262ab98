"""One entry of the scan cache, as a value and as JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.discovery.kinds import Kind
from modular_tf.discovery.load_facts import LoadFacts
from modular_tf.first_contact.finding import Finding
from modular_tf.rules import Violation, loader_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "CacheEntry",
    "dependencies_as_json",
    "dependencies_from_json",
    "entry_from_json",
]

_PROBLEM = ("rule", "message", "remedy", "path", "origin")
# What `CacheEntry.as_json` writes, with the types that it reads again; the last may be None.
_VALUES = (
    "seen", "kinds", "problems", "companions", "absent", "executable_stacks", "dependencies",
    "opened_before", "tried", "finding",
)  # fmt: skip
_TYPES = [list, list, list, list, list, list, str, list, bool]
_SEEN_TYPES = ([list, str, int, str], [list, type(None), int, str])  # read, or refused unread
_T = TypeVar("_T")


class CacheEntry(NamedTuple):
    """The results for one library.

    Attributes:
        seen: The library as it was seen before it was probed.
        facts: What loading needs of the probe.
        dependencies: What the verdict rests on beside the library: each library that is loaded
            with it, the linker's cache, and places where there was none and one would be taken.
        opened_before: The files that its code opened when it was tried before, by a finding that no
            longer holds: they are judged before it is tried again.
        tried: Whether it was tried and did no harm.
        finding: What was found when it was tried, or loaded; None where it was neither.
        lasting: Whether it may be kept. What may become right at any time may not, such as a
            library that is missing, nor what changed while it was found out.
    """

    seen: SeenFile
    facts: LoadFacts
    dependencies: tuple[SeenFile, ...] = ()
    opened_before: tuple[str, ...] = ()
    tried: bool = False
    finding: Finding | None = None
    lasting: bool = True

    @property
    def sha256(self) -> str:
        """Of the library's bytes, in hexadecimal digits."""
        return self.seen.sha256 or ""

    def as_json(self, dependencies: str) -> list[Any]:
        """Return it as values of JSON.

        Args:
            dependencies: What to write for them; most libraries of one installation have the same.
        """
        facts = self.facts
        return [
            self.seen.as_row()[1:],
            sorted(kind.value for kind in facts.kinds),
            [[p.rule_id, p.message, p.remedy, p.path, p.origin] for p in facts.problems],
            list(facts.companions),
            list(facts.absent),
            list(facts.executable_stacks),
            dependencies,
            list(self.opened_before),
            self.tried,
            None if self.finding is None else self.finding.as_dict(),
        ]


def entry_from_json(
    path: str, value: Any, dependencies: Callable[[str], tuple[SeenFile, ...]]
) -> CacheEntry:
    """Return the entry that `as_json` has written.

    Args:
        path: Where the library is.
        value: What JSON gave.
        dependencies: Returns the dependencies for which a text was written.

    Raises:
        ValueError: It has another shape.
    """
    if type(value) is not list or _types(value)[:-1] != _TYPES:
        raise ValueError(f"expected a list of {_VALUES}")
    seen, kinds, problems, companions, absent, stacks, text, opened, tried, finding = value
    if _types(seen) not in _SEEN_TYPES:
        raise ValueError("expected other types")
    identity, sha256, seen_ns, boot = seen
    facts = _plain_facts(_strings(kinds))
    if problems or companions or absent or stacks:
        facts = LoadFacts(
            facts.kinds,
            tuple([_problem(row) for row in problems]),
            _strings(companions),
            _strings(absent),
            _strings(stacks),
        )
    return CacheEntry(
        SeenFile(path, FileIdentity.from_row(identity), sha256, seen_ns, boot),
        facts,
        dependencies(text),
        _strings(opened),
        tried,
        None if finding is None else Finding.from_dict(finding),
    )


def dependencies_as_json(dependencies: Iterable[SeenFile]) -> list[Any]:
    """Return dependencies as values of JSON."""
    return [file.as_row() for file in dependencies]


def dependencies_from_json(value: Any) -> tuple[SeenFile, ...]:
    """Return the dependencies that `dependencies_as_json` has written.

    Raises:
        ValueError: It has another shape.
    """
    return tuple([SeenFile.from_row(entry) for entry in _typed(value, list)])


@lru_cache(maxsize=64)
def _plain_facts(kinds: tuple[str, ...]) -> LoadFacts:
    return LoadFacts(frozenset(Kind(name) for name in kinds))


def _problem(value: Any) -> Violation:
    rule, message, remedy, path, origin = _row(value, _PROBLEM)
    broken = loader_rules().get(_typed(rule, str))
    if broken is None:
        raise ValueError("expected the id of a rule")
    texts = [entry if entry is None else _typed(entry, str) for entry in (path, origin)]
    return Violation(broken, _typed(message, str), "", _typed(remedy, str), *texts)


def _strings(values: list[Any]) -> tuple[str, ...]:
    if not {*map(type, values)} <= {str}:
        raise ValueError("expected texts")
    return tuple(values)


def _types(values: Iterable[Any]) -> list[type]:
    return list(map(type, values))


def _row(value: Any, columns: tuple[str, ...]) -> list[Any]:
    if type(value) is not list or len(value) != len(columns):
        raise ValueError(f"expected a list of {columns}")
    return value


def _typed(value: Any, kind: type[_T]) -> _T:
    if type(value) is not kind:  # True is no number here
        raise ValueError(f"expected {kind.__name__}, found {value!r:.200}")
    return value
