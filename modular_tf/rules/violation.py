"""What a rule is, and a broken one as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

    from modular_tf.errors import ModularTFError

_Error = TypeVar("_Error", bound="ModularTFError")
_MOST_OF_A_MESSAGE = 10_000  # characters; a path has up to 4096


class Severity(Enum):
    """The effect of breaking a rule."""

    ERROR = "error"  # the plugin, or the one registration, is refused
    WARNING = "warning"  # it is accepted, and the report says so
    NOTE = "note"  # nothing is demanded; what a plugin does is worth knowing

    @property
    def demand(self) -> str:
        """How strongly such a rule demands what it requires."""
        return {"error": "must", "warning": "should", "note": "worth knowing"}[self.value]


class Rule(str):
    """One requirement. It equals its id, as `http.HTTPStatus.OK` equals 200.

    Attributes:
        id: `FS-nnn`, `SE-nnn`, `KN-nnn` or `LD-nnn`; never reused, never renumbered.
        requirement: What must hold, in one sentence.
        consequence: What breaking it does, here and in TensorFlow.
        remedy: What the plugin's author or user should do.
        source: The C header, TensorFlow behaviour or standard that it comes from, if any does.
        severity: Whether it refuses or warns.
    """

    __slots__ = ("consequence", "id", "remedy", "requirement", "severity", "source")

    id: str
    requirement: str
    consequence: str
    remedy: str
    source: str
    severity: Severity

    def __new__(
        cls,
        id: str,  # noqa: A002  (the attribute's name)
        requirement: str,
        consequence: str,
        remedy: str,
        source: str = "host rule",
        severity: Severity = Severity.ERROR,
    ) -> Self:
        """Make the only rule with this id; `RuntimeError` if there is another one."""
        if id in _by_id:
            raise RuntimeError(f"rule id {id} is used twice")
        made = _by_id[id] = super().__new__(cls, id)
        made.id, made.requirement, made.consequence = id, requirement, consequence
        made.remedy, made.source, made.severity = remedy, source, severity
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return rule, (self.id,)


_by_id: dict[str, Rule] = {}


def rule(rule_id: str) -> Rule:
    """Return the rule with this id, or raise KeyError."""
    return _by_id[rule_id]


@dataclass(frozen=True, slots=True)
class Violation:
    """What was found wrong with one plugin, or with one place: a broken rule, as a value.

    Discovery, loading, first contact and service all make this value, and reports, `why` and JSON
    show it. `modular_tf.Problem` and `modular_tf.Reason` are other names of it.

    Attributes:
        rule: The rule that is broken; its id will do. None where a plugin failed by its own word.
        message: What was expected and what was found, one sentence without a full stop. At most
            10 000 characters; those that a terminal would obey are written out.
        stage: Where on the way it was decided: `trust`, `probe`, `policy`, `first-contact`, `load`,
            `init`, `register`, `list`, `work`, `hooks`; empty until a stage of the service takes
            it.
        remedy: What to do: the rule's remedy unless a better one is known. None where nobody can
            know.
        path: The file or directory concerned, if one is; with all its characters, so that it can
            be opened.
        origin: What named it: a variable, a distribution, a directory. Bounded and written out as
            the message, like the remedy.
        scheme: The scheme that the plugin does not serve, or not as it should, for that; None where
            it concerns no single one.
    """

    rule: Rule | None
    message: str
    stage: str = ""
    remedy: str | None = None
    path: str | None = None
    origin: str | None = None
    scheme: str | None = None

    def __post_init__(self) -> None:
        broken = None if self.rule is None else rule(self.rule)
        object.__setattr__(self, "rule", broken)
        remedy = broken.remedy if self.remedy is None and broken is not None else self.remedy
        shown = {"message": self.message, "remedy": remedy, "origin": self.origin}
        if self.path is not None and len(self.path) > _MOST_OF_A_MESSAGE:  # it opens no file
            shown["path"] = self.path
        for name, text in shown.items():
            object.__setattr__(self, name, text and _shown(text))

    @classmethod
    def of_error(cls, error: ModularTFError, stage: str = "") -> Violation:
        """Return what an error says was wrong; the rule is not cited in the message again."""
        message = error.message.replace(f" (rule {error.rule})", "", 1)
        broken = None if error.rule is None else rule(error.rule)
        return cls(broken, message, stage, path=error.path)

    @property
    def rule_id(self) -> str:
        """Id of the rule, empty for none."""
        return "" if self.rule is None else self.rule.id

    @property
    def severity(self) -> Severity:
        """What breaking the rule does; a failure by a plugin's own word is an error."""
        return Severity.ERROR if self.rule is None else self.rule.severity

    @property
    def is_error(self) -> bool:
        """Whether it refuses the plugin, or a part of it."""
        return self.severity is Severity.ERROR

    @property
    def in_full(self) -> str:
        """The message with what the rule demands."""
        demanded = "" if self.rule is None else f" (rule {self.rule}: {self.rule.requirement})"
        return self.message + demanded

    def error(
        self,
        kind: type[_Error],
        *,
        plugin: str | None = None,
        operation: str | None = None,
        hint: str = "",
    ) -> _Error:
        """Return it as an error, not raised; the error's message cites the rule.

        Args:
            kind: The class of the error.
            plugin: Name or path of the plugin concerned.
            operation: Name of the operation that fails.
            hint: What the message ends with.
        """
        text = f"{self.message} (rule {self.rule_id}){hint}"
        return kind(text, plugin=plugin, path=self.path, operation=operation, rule=self.rule)

    def at(self, stage: str) -> Violation:
        """Return the same at a stage of a plugin's way."""
        return replace(self, stage=stage)

    def of_scheme(self, scheme: str | None) -> Violation:
        """Return the same, naming the scheme whose table is concerned; None for no scheme."""
        named = f"scheme {scheme!r}: {self.message}"
        return self if scheme is None else replace(self, message=named, scheme=scheme)

    def as_dict(self) -> dict[str, str | None]:
        """Return it as JSON knows it."""
        return {
            "stage": self.stage,
            "rule": self.rule_id or None,
            "message": self.message,
            "remedy": self.remedy,
        }


Problem = Violation
"""What a search or a probe found wrong."""

Reason = Violation
"""Why a plugin, or a part of it, does not serve."""


def written_out(text: str) -> str:
    """Return a text with what is not printable written out, so that no terminal obeys it.

    A byte that is not UTF-8 stays what it is: programs find the file by it.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or "\udc80" <= c <= "\udcff" else _escape_sequence(c) for c in text
    )


def _escape_sequence(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _shown(message: str) -> str:
    """Return what a message shows of a text that may be a plugin's."""
    text = written_out(message[:_MOST_OF_A_MESSAGE])
    if max(len(message), len(text)) <= _MOST_OF_A_MESSAGE:
        return text
    end = f"... (the first of {len(message)} characters)"
    return text[: _MOST_OF_A_MESSAGE - len(end)] + end
