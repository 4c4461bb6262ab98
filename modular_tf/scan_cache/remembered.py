"""What is kept of one library, as a value and as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.discovery.kinds import Kind
from modular_tf.discovery.load_facts import LoadFacts
from modular_tf.discovery.problem import Problem
from modular_tf.first_contact.finding import Finding
from modular_tf.rules import all_rules

__all__ = ["Remembered"]

_KINDS = {kind.value: kind for kind in Kind}
_IDENTITY_NUMBERS = len(FileIdentity._fields)
_T = TypeVar("_T")


class Remembered(NamedTuple):
    """What is known of one library.

    Attributes:
        seen: The library as it was seen before it was probed.
        facts: What loading needs of the probe.
        dependencies: What the verdict rests on beside the library: each library that is loaded
            with it, the linker's cache, and places where there was none and one would be taken.
        tried: Whether it was tried and did no harm.
        finding: What was found when it was tried, or loaded; None where it was neither.
    """

    seen: SeenFile
    facts: LoadFacts
    dependencies: tuple[SeenFile, ...] = ()
    tried: bool = False
    finding: Finding | None = None

    @property
    def sha256(self) -> str:
        """Of the library's bytes, in hexadecimal digits."""
        return self.seen.sha256 or ""

    def as_json(self) -> list[Any]:
        """Return it as JSON knows it."""
        facts = self.facts
        return [
            _file_as_json(self.seen)[1:],
            sorted(kind.value for kind in facts.kinds),
            [[p.rule, p.message, p.remedy, p.path, p.origin] for p in facts.problems],
            list(facts.companions),
            list(facts.absent),
            [_file_as_json(file) for file in self.dependencies],
            self.tried,
            None if self.finding is None else self.finding.as_dict(),
        ]

    @classmethod
    def from_json(cls, path: str, value: Any) -> Remembered:
        """Read what `as_json` gives.

        Args:
            path: Where the library is.
            value: What JSON gave.

        Raises:
            ValueError: It has another shape.
        """
        if type(value) is not list or len(value) != 8:  # noqa: PLR2004  (as in as_json)
            raise ValueError("expected a list of 8 values")
        seen, kinds, problems, companions, absent, dependencies, tried, finding = value
        return cls(
            _seen(path, seen),
            LoadFacts(
                frozenset([_kind(name) for name in _typed(kinds, list)]),
                tuple([_problem(row) for row in _typed(problems, list)]),
                _strings(companions),
                _strings(absent),
            ),
            tuple([_dependency(row) for row in _typed(dependencies, list)]),
            _typed(tried, bool),
            None if finding is None else Finding.from_dict(finding),
        )


def _file_as_json(file: SeenFile) -> list[Any]:
    identity = None if file.identity is None else list(file.identity)
    return [file.path, identity, file.sha256, file.seen_ns]


def _dependency(value: Any) -> SeenFile:
    if type(value) is not list or len(value) != 4 or type(value[0]) is not str:  # noqa: PLR2004
        raise ValueError("expected path, identity, digest and time of a file")
    return _file(*value)


def _seen(path: str, value: Any) -> SeenFile:
    if type(value) is not list or len(value) != 3:  # noqa: PLR2004
        raise ValueError("expected identity, digest and time of a file")
    file = _file(path, *value)
    if file.identity is None or file.sha256 is None:
        raise ValueError("expected a file that was there and read")
    return file


def _file(path: str, identity: Any, sha256: Any, seen_ns: Any) -> SeenFile:
    if sha256 is not None and type(sha256) is not str:
        raise ValueError("expected a digest or none")
    numbers = None
    if identity is not None:
        if type(identity) is not list or len(identity) != _IDENTITY_NUMBERS:
            raise ValueError("expected the numbers of an identity")
        numbers = FileIdentity(*[_typed(number, int) for number in identity])
    return SeenFile(path, numbers, sha256, _typed(seen_ns, int))


def _kind(value: Any) -> Kind:
    if type(value) is not str or value not in _KINDS:
        raise ValueError("expected the name of a kind")
    return _KINDS[value]


def _problem(value: Any) -> Problem:
    rule, message, remedy, path, origin = _typed(value, list)
    if rule not in all_rules():
        raise ValueError("expected the id of a rule")
    texts = [entry if entry is None else _typed(entry, str) for entry in (path, origin)]
    return Problem(rule, _typed(message, str), _typed(remedy, str), *texts)


def _strings(value: Any) -> tuple[str, ...]:
    return tuple([_typed(entry, str) for entry in _typed(value, list)])


def _typed(value: Any, kind: type[_T]) -> _T:
    if type(value) is not kind:  # True is no number here
        raise ValueError(f"expected {kind.__name__}, found {value!r:.200}")
    return value
