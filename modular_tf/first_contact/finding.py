"""What first contact found: what a plugin did to its process, what it breaks, what it offers.

Findings cross a pipe from a process in which a plugin ran, and are kept on disk; so they are JSON
and are read back as data that anybody may have written.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeVar, cast

from modular_tf.discovery.file_identity import SeenFile
from modular_tf.rules import Violation, loader_rules

Stage = Literal["load", "init"]
_STAGES = ("load", "init")
CHANGES_OF_PROCESS = "LD-069"
_NOTE = frozenset(("stage", "rule", "message"))
_PLATFORM = frozenset(("device_type", "platform", "priority"))
_OFFER = frozenset(("schemes", "platform"))
_INCIDENT = frozenset(("rule", "message", "signal", "last_call", "backtrace", "said"))
_FINDING = frozenset(("incident", "offer", "notes", "opened", "lasting"))
_T = TypeVar("_T")


class Note(NamedTuple):
    """One rule that the plugin broke, as loading it in the application reports it.

    Attributes:
        stage: Where on the way: `load` or `init`.
        rule: Id of the rule, which has the severity; None where the plugin failed by its own word.
        message: What was found.
    """

    stage: Stage
    rule: str | None
    message: str

    @property
    def is_error(self) -> bool:
        """Whether it refuses the plugin, or a part of it."""
        return self.rule is None or Violation(self.rule, self.message).is_error

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {"stage": self.stage, "rule": self.rule, "message": self.message}

    @classmethod
    def from_dict(cls, value: Any) -> Note:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = _fields(value, _NOTE)
        if given["stage"] not in _STAGES:
            raise ValueError(f"stage: expected one of {_STAGES}, found {given['stage']!r}")
        rule = None if given["rule"] is None else _rule_id(given["rule"])
        return cls(cast("Stage", given["stage"]), rule, _typed(given["message"], str))


class PlatformOffer(NamedTuple):
    """The device platform that a plugin registers.

    Attributes:
        device_type: The type of its devices.
        platform: Its name.
        priority: Where its factory stands among those of its type.
    """

    device_type: str
    platform: str
    priority: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "device_type": self.device_type,
            "platform": self.platform,
            "priority": self.priority,
        }

    @classmethod
    def from_dict(cls, value: Any) -> PlatformOffer:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = _fields(value, _PLATFORM)
        device_type, platform = (_typed(given[key], str) for key in ("device_type", "platform"))
        return cls(device_type, platform, _typed(given["priority"], int))


class Offer(NamedTuple):
    """What a plugin would register.

    Attributes:
        schemes: Those whose tables were accepted and whose `init` succeeded, in its order.
        platform: Its device platform, None for none.
    """

    schemes: tuple[str, ...] = ()
    platform: PlatformOffer | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        platform = None if self.platform is None else self.platform.as_dict()
        return {"schemes": list(self.schemes), "platform": platform}

    @classmethod
    def from_dict(cls, value: Any) -> Offer:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = _fields(value, _OFFER)
        platform = given["platform"]
        read = None if platform is None else PlatformOffer.from_dict(platform)
        return cls(_strings(given["schemes"]), read)


class Incident(NamedTuple):
    """What a plugin did to the process that it was tried in, or why it could not be tried.

    Attributes:
        violation: The rule, LD-063 where the plugin could not be tried, and the whole story.
        signal: The signal that ended the process, None for none.
        last_call: The call that was under way, None where it came to none.
        backtrace: Native frames, the innermost first, as `FILE SYMBOL+0xOFFSET`.
        said: The last that was written to the standard streams.
    """

    violation: Violation
    signal: int | None = None
    last_call: str | None = None
    backtrace: tuple[str, ...] = ()
    said: str = ""

    @property
    def untried(self) -> bool:
        """Whether it is not the plugin that failed."""
        return self.violation.rule_id == "LD-063"

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "rule": self.violation.rule_id,
            "message": self.violation.message,
            "signal": self.signal,
            "last_call": self.last_call,
            "backtrace": list(self.backtrace),
            "said": self.said,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Incident:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = _fields(value, _INCIDENT)
        return cls(
            Violation(_rule_id(given["rule"]), _typed(given["message"], str)),
            signal=_optional(given["signal"], int),
            last_call=_optional(given["last_call"], str),
            backtrace=_strings(given["backtrace"]),
            said=_typed(given["said"], str),
        )


class Finding(NamedTuple):
    """The outcome of one plugin's first contact.

    Attributes:
        incident: What it did to its process; None where it did nothing. With one, the plugin must
            not run in the application.
        offer: What it would register; None where the trial did not come to its end.
        notes: The rules that it broke, errors and warnings, in the order in which loading finds
            them.
        opened: The libraries that its code opened, beside those that it needs.
        lasting: Whether those are all. What was closed again is not known, and a change of it would
            go unseen: the plugin is tried again by the next process.
    """

    incident: Incident | None = None
    offer: Offer | None = None
    notes: tuple[Note, ...] = ()
    opened: tuple[SeenFile, ...] = ()
    lasting: bool = True

    @property
    def is_clean(self) -> bool:
        """Whether it did no harm and nothing of it was refused.

        What was refused may be right the next time: a variable, a device or a library was missing.
        """
        return self.incident is None and not any(note.is_error for note in self.notes)

    @property
    def notes_of_loading(self) -> tuple[Note, ...]:
        """Those that loading it in the application finds as well."""
        return tuple(note for note in self.notes if note.rule != CHANGES_OF_PROCESS)

    @property
    def notes_of_trial(self) -> tuple[Note, ...]:
        """Those that only a trial finds: what it changes of its process."""
        return tuple(note for note in self.notes if note.rule == CHANGES_OF_PROCESS)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "incident": None if self.incident is None else self.incident.as_dict(),
            "offer": None if self.offer is None else self.offer.as_dict(),
            "notes": [note.as_dict() for note in self.notes],
            "opened": [file.as_row() for file in self.opened],
            "lasting": self.lasting,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Finding:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = _fields(value, _FINDING)
        incident, offer = given["incident"], given["offer"]
        return cls(
            None if incident is None else Incident.from_dict(incident),
            None if offer is None else Offer.from_dict(offer),
            tuple([Note.from_dict(note) for note in _typed(given["notes"], list)]),
            tuple([SeenFile.from_row(file) for file in _typed(given["opened"], list)]),
            _typed(given["lasting"], bool),
        )


def _fields(value: Any, names: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError(f"expected an object with {sorted(names)}, found {value!r:.200}")
    return value


def _typed(value: Any, kind: type[_T]) -> _T:
    if type(value) is not kind:  # True is no number here
        raise ValueError(f"expected {kind.__name__}, found {value!r:.200}")
    return value


def _optional(value: Any, kind: type[_T]) -> _T | None:
    return None if value is None else _typed(value, kind)


def _strings(value: Any) -> tuple[str, ...]:
    return tuple([_typed(entry, str) for entry in _typed(value, list)])


def _rule_id(value: Any) -> str:
    if _typed(value, str) not in loader_rules():
        raise ValueError(f"expected the id of a rule, found {value!r:.200}")
    return cast("str", value)
