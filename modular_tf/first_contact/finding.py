"""The finding of first contact: what a plugin did to its process, which rules it broke, its offer.

Findings come from a process in which a plugin ran, and are kept on disk. So they are JSON, and
reading them checks every field. Texts are shortened and escaped when a finding is made.
"""

from __future__ import annotations

import re
from signal import NSIG
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.registered_names import DEVICE_NAME, SCHEME
from modular_tf.discovery.file_identity import SeenFile
from modular_tf.discovery.library_bounds import MOST_BYTES
from modular_tf.processes.backtrace import MOST_FRAMES
from modular_tf.processes.checked_values import (
    fields_of,
    known_rule,
    list_of,
    listed,
    number_in,
    typed,
)
from modular_tf.processes.plain_text import (
    MOST_OF_A_CALL,
    MOST_OF_A_MESSAGE,
    plain,
    plain_lines,
)
from modular_tf.rules import Violation
from modular_tf.rules.first_contact import CHILD_STARTABLE, NEIGHBOURS_LINKABLE, PROCESS_STATE_KEPT

if TYPE_CHECKING:
    from typing_extensions import Self

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.opening import OpenedPlugin

_STAGES = ("load", "init")
_OF_TRIAL = frozenset({PROCESS_STATE_KEPT, NEIGHBOURS_LINKABLE})
_NOTE = frozenset(("stage", "rule", "message", "scheme"))
_PLATFORM = frozenset(("device_type", "platform", "priority", "layout", "has_timers"))
_OFFER = frozenset(("schemes", "platform", "kernels", "ops"))
_INCIDENT = frozenset(("rule", "message", "signal", "last_call", "backtrace", "said"))
_FINDING = frozenset(("incident", "offer", "notes", "opened", "lasting"))
MOST_NOTES = 4096
_MOST_OPENED = 1024
_MOST_OF_A_PATH = 4096
_MOST_TO_READ = 1 << 33  # bytes of what was opened: each start may read them again
_MOST_SCHEMES = 1024  # as FS-004
_MOST_KERNELS = 1 << 20
_MOST_OF_A_FRAME = 1020
_MOST_OF_A_SCHEME = 1000
_32_BITS = (-(1 << 31), (1 << 31) - 1)
_64_BITS = (-(1 << 63), (1 << 64) - 1)
_LAYOUT = r"[a-z0-9.-]{1,40}"
_SHA256 = r"[0-9a-f]{64}"
_BOOT_ID = r"[0-9a-f-]{0,64}"


def noted(violation: Violation) -> Violation:
    """Return what a finding keeps of a violation: stage, rule, scheme and a shortened message.

    The stage is `load` or `init`; the texts are plain and of some length.
    """
    rule, stage, scheme = violation.rule, violation.stage, violation.scheme
    named = None if scheme is None else plain(scheme, _MOST_OF_A_SCHEME)
    return Violation(rule, plain(violation.message, MOST_OF_A_MESSAGE), stage, scheme=named)


def note_as_dict(note: Violation) -> dict[str, Any]:
    """Return a violation of a finding as JSON knows it."""
    return {
        "stage": note.stage,
        "rule": note.rule_id or None,
        "message": note.message,
        "scheme": note.scheme,
    }


def _note_from_dict(value: Any) -> Violation:
    given = fields_of(value, _NOTE)
    if given["stage"] not in _STAGES:
        raise ValueError(f"stage: expected one of {_STAGES}, found {given['stage']!r}")
    broken = None if given["rule"] is None else known_rule(given["rule"])
    scheme = None if given["scheme"] is None else typed(given["scheme"], str)
    return noted(Violation(broken, typed(given["message"], str), given["stage"], scheme=scheme))


class PlatformOffer(NamedTuple):
    """The device platform that a plugin registers.

    Attributes:
        device_type: The type of its devices.
        platform: Its name.
        priority: The priority of its factory among those of its type.
        layout: The generation of its structs, as `modular_tf.abi.layout.Dialect` calls it.
        has_timers: Whether it has every function of timers.
    """

    device_type: str
    platform: str
    priority: int
    layout: str = "device-2.9"
    has_timers: bool = True

    @classmethod
    def of(cls, platform: DevicePlatform) -> Self:
        """Return what a platform is that was loaded."""
        tables = platform.tables
        named = platform.device_type, platform.platform, platform.priority
        return cls(*named, tables.dialect.value, tables.has_timers)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "device_type": self.device_type,
            "platform": self.platform,
            "priority": self.priority,
            "layout": self.layout,
            "has_timers": self.has_timers,
        }

    @classmethod
    def from_dict(cls, value: Any) -> PlatformOffer:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = fields_of(value, _PLATFORM)
        device_type = _name(given["device_type"], DEVICE_NAME)
        platform = _name(given["platform"], DEVICE_NAME)
        priority = number_in(given["priority"], *_32_BITS)
        layout, has_timers = typed(given["layout"], str), typed(given["has_timers"], bool)
        if not re.fullmatch(_LAYOUT, layout):
            raise ValueError(f"layout: expected one like 'device-2.9', found {layout!r}")
        return cls(device_type, platform, priority, layout, has_timers)


class Offer(NamedTuple):
    """What a plugin would register.

    Attributes:
        schemes: Those whose tables were accepted and whose `init` succeeded, in its order.
        platform: Its device platform, None for none.
        kernels: How many kernels.
        ops: How many definitions of operations.
    """

    schemes: tuple[str, ...] = ()
    platform: PlatformOffer | None = None
    kernels: int = 0
    ops: int = 0

    @classmethod
    def of(cls, opened: OpenedPlugin) -> Offer:
        """Return what a plugin that is open would register."""
        platform = None if opened.platform is None else PlatformOffer.of(opened.platform)
        kernels = opened.kernels
        return cls(opened.schemes, platform, len(kernels.kernels), len(kernels.op_definitions))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        platform = None if self.platform is None else self.platform.as_dict()
        return {
            "schemes": list(self.schemes),
            "platform": platform,
            "kernels": self.kernels,
            "ops": self.ops,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Offer:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = fields_of(value, _OFFER)
        platform = given["platform"]
        read = None if platform is None else PlatformOffer.from_dict(platform)
        schemes = tuple([_name(each, SCHEME) for each in listed(given["schemes"], _MOST_SCHEMES)])
        if len(schemes) > 1 and len(set(schemes)) < len(schemes):
            raise ValueError("expected each scheme once")
        kernels = number_in(given["kernels"], 0, _MOST_KERNELS)
        return cls(schemes, read, kernels, number_in(given["ops"], 0, _MOST_KERNELS))


class _Incident(NamedTuple):
    violation: Violation
    signal: int | None
    last_call: str | None
    backtrace: tuple[str, ...]
    said: str


class Incident(_Incident):
    """What a plugin did to the process that it was tried in, or why it could not be tried.

    Attributes:
        violation: The broken rule, LD-063 where the plugin could not be tried, with the message.
        signal: The signal that ended the process, None for none.
        last_call: The call that was under way, None where none was made.
        backtrace: Native frames, the innermost first, as `FILE SYMBOL+0xOFFSET`.
        said: The last text that was written to the standard streams.
    """

    __slots__ = ()

    def __new__(
        cls,
        violation: Violation,
        signal: int | None = None,
        last_call: str | None = None,
        backtrace: tuple[str, ...] = (),
        said: str = "",
    ) -> Self:
        """Return an incident with its texts escaped and shortened."""
        return super().__new__(
            cls,
            Violation(violation.rule, plain(violation.message, MOST_OF_A_MESSAGE)),
            signal,
            None if last_call is None else plain(last_call, MOST_OF_A_CALL),
            tuple([plain(frame, _MOST_OF_A_FRAME) for frame in backtrace[:MOST_FRAMES]]),
            plain_lines(said),
        )

    @property
    def untried(self) -> bool:
        """Whether the plugin could not be tried, for a reason that is not its fault."""
        return self.violation.rule_id == CHILD_STARTABLE

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
        given = fields_of(value, _INCIDENT)
        signal, last_call = given["signal"], given["last_call"]
        return cls(
            Violation(known_rule(given["rule"]), typed(given["message"], str)),
            signal=None if signal is None else number_in(signal, 1, NSIG - 1),
            last_call=None if last_call is None else typed(last_call, str),
            backtrace=tuple(list_of(given["backtrace"], str, MOST_FRAMES)),
            said=typed(given["said"], str),
        )


class Finding(NamedTuple):
    """The outcome of one plugin's first contact.

    Attributes:
        incident: What it did to its process; None where it did nothing. With one, the plugin must
            not run in the application.
        offer: What it would register; None where the trial did not come to its end.
        notes: The rules that it broke, errors and warnings, in the order in which loading finds
            them.
        opened: The libraries that its code opened, besides those that it needs.
        lasting: Whether `opened` is complete. Libraries that were closed again are not known, and a
            change of them would go unnoticed: so the next process tries the plugin again.
    """

    incident: Incident | None = None
    offer: Offer | None = None
    notes: tuple[Violation, ...] = ()
    opened: tuple[SeenFile, ...] = ()
    lasting: bool = True

    @property
    def is_clean(self) -> bool:
        """Whether it did no harm and nothing of it was rejected.

        What was rejected may be accepted the next time: a variable, a device or a library may have
        been missing.
        """
        if self.incident is not None:
            return False
        return not (self.notes and any(note.is_error for note in self.notes))

    @property
    def notes_of_loading(self) -> tuple[Violation, ...]:
        """Those that loading it in the application finds as well."""
        return tuple([note for note in self.notes if note.rule not in _OF_TRIAL])

    @property
    def notes_of_trial(self) -> tuple[Violation, ...]:
        """Those that only a trial finds: what it changes of its process, and what it lacks."""
        return tuple([note for note in self.notes if note.rule in _OF_TRIAL])

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "incident": None if self.incident is None else self.incident.as_dict(),
            "offer": None if self.offer is None else self.offer.as_dict(),
            "notes": [note_as_dict(note) for note in self.notes],
            "opened": [file.as_row() for file in self.opened],
            "lasting": self.lasting,
        }

    @classmethod
    def from_dict(cls, value: Any) -> Finding:
        """Read what `as_dict` gives.

        Raises:
            ValueError: It has another shape.
        """
        given = fields_of(value, _FINDING)
        incident, offer = given["incident"], given["offer"]
        notes = listed(given["notes"], MOST_NOTES)
        return cls(
            None if incident is None else Incident.from_dict(incident),
            None if offer is None else Offer.from_dict(offer),
            tuple(map(_note_from_dict, notes)),
            opened_from_rows(given["opened"]),
            typed(given["lasting"], bool),
        )


def _name(value: Any, pattern: re.Pattern[str]) -> str:
    """Return the name of a scheme or of devices, as loading accepts it."""
    if type(value) is not str or not pattern.fullmatch(value):
        raise ValueError(f"expected a name like {pattern.pattern}, found {value!r:.200}")
    return value


def opened_from_rows(value: Any) -> tuple[SeenFile, ...]:
    """Return the libraries that code opened (`Finding.opened`), given as JSON knows them.

    Raises:
        ValueError: They have another shape, or would take too long to read.
    """
    if not listed(value, _MOST_OPENED):
        return ()
    opened = tuple([_opened(file) for file in value])
    sizes = [seen.identity.size for seen in opened if seen.identity is not None]
    if sum(size for size in sizes if size <= MOST_BYTES) > _MOST_TO_READ:  # none longer is read
        raise ValueError(f"expected at most {_MOST_TO_READ} bytes in what was opened")
    return opened


def _opened(value: Any) -> SeenFile:
    """Return a library that code opened."""
    seen = SeenFile.from_row(value)
    if not seen.path.startswith("/") or len(seen.path) > _MOST_OF_A_PATH or "\0" in seen.path:
        raise ValueError(f"expected an absolute path, found {seen.path!r:.200}")
    # Messages show it. What is no text in the locale's encoding is shown escaped.
    if not all(c.isprintable() or "\udc80" <= c <= "\udcff" for c in seen.path):
        raise ValueError(f"expected a path that can be shown, found {seen.path!r:.200}")
    if seen.identity is None:
        raise ValueError("expected a file, found none")
    for number in (*seen.identity, seen.seen_ns):
        number_in(number, *_64_BITS)
    number_in(seen.identity.size, 0, -_64_BITS[0] - 1)
    if seen.sha256 is not None and not re.fullmatch(_SHA256, seen.sha256):
        raise ValueError(f"expected a SHA-256, found {seen.sha256!r:.200}")
    if not re.fullmatch(_BOOT_ID, seen.boot):
        raise ValueError(f"expected the id of a boot, found {seen.boot!r:.200}")
    return seen
