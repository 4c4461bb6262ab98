"""How a check says what it expected and what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.rules import Severity

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

T = TypeVar("T")

_MOST_SHOWN = 200  # characters
_PART_SHOWN = 32  # bytes, characters or entries, of what is longer


class Deviation(Exception):  # noqa: N818  (it is a finding, no error of ours)
    """The plugin does not do what the check asks for.

    Attributes:
        message: What is wrong, in one sentence.
        expected: What the rule asks for.
        found: What the plugin did.
        severity: How bad it is; None for as bad as the rule says. It can only be milder.
    """

    def __init__(
        self,
        message: str,
        *,
        expected: str = "",
        found: str = "",
        severity: Severity | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.found = found
        self.severity = severity


class Unsupported(Exception):  # noqa: N818  (likewise)
    """The plugin does not offer what the check needs: a slot is NULL, or says UNIMPLEMENTED."""


class Blocked(Exception):  # noqa: N818  (likewise)
    """What the check needs first did not work; another check is about that.

    The message is the same for all checks that one cause blocks: a report has one line for them.

    Attributes:
        see: The ids of the rules that are about it.
        found: What the plugin did, for this check.
        wants_root: Whether it may work below another root.
    """

    def __init__(
        self, message: str, *see: str | None, found: str = "", wants_root: bool = False
    ) -> None:
        super().__init__(message)
        self.see = tuple(rule_id for rule_id in see if rule_id)
        self.found = found
        self.wants_root = wants_root

    @classmethod
    def by(cls, error: Exception) -> Blocked:
        """Return an error that keeps checks from being tried as what blocks them."""
        return error if isinstance(error, Blocked) else cls(str(error))

    def as_entry(self) -> dict[str, Any]:
        """Return what another process needs to raise it again."""
        return {"blocked": str(self), "see": self.see, "wants_root": self.wants_root}


def expect(condition: object, message: str, *, expected: str = "", found: str = "") -> None:
    """Demand that a condition holds; the message says what is wrong where it does not."""
    if not condition:
        raise Deviation(message, expected=expected, found=found)


def expect_none(found: Iterable[str], message: str, *, expected: str = "") -> None:
    """Demand that there are none of these names."""
    names = sorted(set(found))
    expect(not names, message.format(len(names)), expected=expected, found=", ".join(names))


def expect_at_least(found: float, least: float, message: str, unit: str = "") -> None:
    """Demand that a number is no less than another; the message says what is wrong if it is."""
    expect(found >= least, message, expected=f"at least {least}{unit}", found=f"{found}{unit}")


def expect_at_most(found: float, most: float, message: str, unit: str = "") -> None:
    """Demand that a number is no more than another; as `expect_at_least`."""
    expect(found <= most, message, expected=f"at most {most}{unit}", found=f"{found}{unit}")


def expect_equal(found: object, expected: object, what: str) -> None:
    """Demand that a value, such as `the length of a closed file`, is the expected one."""
    if found != expected:
        message = f"{what} is not what it must be"
        shown, wanted = where_they_differ(found, expected)
        raise Deviation(message, expected=wanted, found=shown)


def expect_in(found: T, allowed: Container[T], what: str) -> None:
    """Demand that a value is one of several."""
    if found not in allowed:
        message = f"{what} is none of those that it may be"
        raise Deviation(message, expected=f"one of {_shown(allowed)}", found=_shown(found))


def advise(condition: object, message: str, *, expected: str = "", found: str = "") -> None:
    """Recommend that a condition holds, in a check whose rule demands something else."""
    if not condition:
        raise Deviation(message, expected=expected, found=found, severity=Severity.WARNING)


def note(message: str, *, found: str = "") -> None:
    """End the check with something worth knowing, which is no fault."""
    raise Deviation(message, found=found, severity=Severity.NOTE)


def where_they_differ(found: object, expected: object) -> tuple[str, str]:
    """Show two values that differ; of long bytes, texts and lists what begins at the difference."""
    for kind, unit in ((bytes, "byte"), (str, "character"), (list, "entry"), (tuple, "entry")):
        if isinstance(found, kind) and isinstance(expected, kind):
            pairs = enumerate(zip(found, expected))  # noqa: B905  (one may be shorter)
            shorter = min(len(found), len(expected))
            at = next((at for at, (one, other) in pairs if one != other), shorter)
            return _shown_from(found, at, unit), _shown_from(expected, at, unit)
    return _shown(found), _shown(expected)


def _shown_from(value: Any, at: int, unit: str) -> str:
    if len(repr(value)) <= _MOST_SHOWN:
        return repr(value)
    part = value[at : at + _PART_SHOWN]
    return f"from {unit} {at} of {len(value)} on: {_shown(part)}"


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}... ({len(text)} characters)"
