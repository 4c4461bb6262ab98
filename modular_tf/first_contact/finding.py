"""The limits and the finding of a trial: what a plugin did to its process, broke, and offers.

Findings come from a process in which a plugin ran, and are stored on disk. So reading them checks
every field (`modular_tf.codec`). Texts are shortened and escaped when a finding is made.
"""

from __future__ import annotations

from functools import partial
from signal import NSIG
from typing import TYPE_CHECKING, Annotated, NamedTuple

from modular_tf.abi.registered_names import DEVICE_NAME, SCHEME
from modular_tf.codec import at_most, between, like, shown
from modular_tf.discovery.file_identity import MOST_BYTES, SeenFile
from modular_tf.processes.ending import (
    MOST_FRAMES,
    MOST_OF_A_CALL,
    MOST_OF_A_MESSAGE,
    plain,
    plain_lines,
)
from modular_tf.rules import Rule, Violation
from modular_tf.rules import first_contact as rules

if TYPE_CHECKING:
    from typing_extensions import Self

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.opening import OpenedPlugin

_STAGES = ("load", "init")
_OF_TRIAL = frozenset({rules.PROCESS_STATE_KEPT, rules.NEIGHBOURS_LINKABLE})
MOST_NOTES = 4096
_MOST_OPENED = 1024
_MOST_OF_A_PATH = 4096
_MOST_TO_READ = 1 << 33  # bytes of what was opened: each start may read them again
_MOST_SCHEMES = 1024  # as FS-004
_MOST_KERNELS = 1 << 20
_MOST_OF_A_FRAME = 1020
_MOST_OF_A_SCHEME = 1000

ACCEPTABLE = frozenset(
    {
        rules.MEMORY_BOUNDED,
        rules.OUTPUT_UNUSED,  # a warning by itself; configurations name it
        rules.SIGNAL_HANDLERS_KEPT,
        rules.LOCALE_KEPT,
        rules.NO_PROCESSES_LEFT,
        rules.RIGHTS_KEPT,
        rules.NO_FATAL_TIMER,
        rules.ENDS_IN_ORDER,
    }
)
"""The rules of first contact that a user may take as warnings: those that let the process live."""


class Limits(NamedTuple):
    """The limits of one trial."""

    seconds: float = 30.0  # how long it may take
    # How much memory, beyond the host's own, a process of it may have allocated or touched
    # (`memory_use`). Address space that is merely reserved, files and the stacks of threads do not
    # count.
    memory_mib: int = 1024
    processes: int = 16  # how many it may have started and left at any moment
    accept: frozenset[str] = frozenset()  # ids of rules, of `ACCEPTABLE`, that only warn (LD-069)


def noted(violation: Violation) -> Violation:
    """Return what a finding stores of a violation: stage, rule, scheme and a shortened message.

    Raises `ValueError` for a stage that is none of loading.
    """
    rule, stage, scheme = violation.rule, violation.stage, violation.scheme
    if stage not in _STAGES:
        raise ValueError(f"stage: expected one of {_STAGES}, found {shown(stage)}")
    named = None if scheme is None else plain(scheme, _MOST_OF_A_SCHEME)
    return Violation(rule, plain(violation.message, MOST_OF_A_MESSAGE), stage, scheme=named)


class PlatformOffer(NamedTuple):
    """The device platform that a plugin registers."""

    device_type: Annotated[str, like(DEVICE_NAME)]
    platform: Annotated[str, like(DEVICE_NAME)]  # its name
    # of its factory among those of its type
    priority: Annotated[int, between(-(1 << 31), (1 << 31) - 1)]
    # The generation of its structs, as `modular_tf.abi.layouts.Dialect` calls it.
    layout: Annotated[str, like(r"[a-z0-9.-]{1,40}")] = "device-2.9"
    has_timers: bool = True  # it has every function of timers

    @classmethod
    def of(cls, platform: DevicePlatform) -> Self:
        """Return the offer of a platform that was loaded."""
        tables = platform.tables
        named = platform.device_type, platform.platform, platform.priority
        return cls(*named, tables.dialect.value, tables.has_timers)


def _each_once(schemes: tuple[str, ...]) -> tuple[str, ...]:
    if len(schemes) > 1 and len(set(schemes)) < len(schemes):
        raise ValueError("expected each scheme once")
    return schemes


class Offer(NamedTuple):
    """What a plugin would register."""

    # Those whose tables were accepted and whose `init` succeeded, in its order.
    schemes: Annotated[
        tuple[Annotated[str, like(SCHEME)], ...], at_most(_MOST_SCHEMES), _each_once
    ] = ()
    platform: PlatformOffer | None = None
    kernels: Annotated[int, between(0, _MOST_KERNELS)] = 0  # how many
    ops: Annotated[int, between(0, _MOST_KERNELS)] = 0  # how many definitions of operations

    @classmethod
    def of(cls, opened: OpenedPlugin) -> Self:
        """Return what a plugin that is open would register."""
        platform = None if opened.platform is None else PlatformOffer.of(opened.platform)
        found = opened.kernels
        counts = (0, 0) if found is None else (len(found.kernels), len(found.op_definitions))
        return cls(opened.schemes, platform, *counts)


class Incident(NamedTuple):
    """What a plugin did to the process that it was tried in, or why it could not be tried."""

    rule: Rule  # the broken rule, LD-063 where the plugin could not be tried
    message: Annotated[str, partial(plain, most=MOST_OF_A_MESSAGE)]
    signal: Annotated[int, between(1, NSIG - 1)] | None = None  # that ended the process
    last_call: Annotated[str, plain] | None = None  # the call that was under way
    # Native frames, the innermost first, as `FILE SYMBOL+0xOFFSET`.
    backtrace: Annotated[
        tuple[Annotated[str, partial(plain, most=_MOST_OF_A_FRAME)], ...],
        at_most(MOST_FRAMES),
    ] = ()
    last_output: Annotated[str, plain_lines] = ""  # the end of the text on the standard streams

    @classmethod
    def of(
        cls,
        violation: Violation,
        signal: int | None = None,
        last_call: str | None = None,
        backtrace: tuple[str, ...] = (),
        last_output: str = "",
    ) -> Self:
        """Return the incident of a broken rule, with its texts escaped and shortened."""
        if violation.rule is None:
            raise ValueError("expected a violation of a rule")
        return cls(
            violation.rule,
            plain(violation.message, MOST_OF_A_MESSAGE),
            signal,
            None if last_call is None else plain(last_call, MOST_OF_A_CALL),
            tuple([plain(frame, _MOST_OF_A_FRAME) for frame in backtrace[:MOST_FRAMES]]),
            plain_lines(last_output),
        )

    @property
    def violation(self) -> Violation:
        """The broken rule and the message."""
        return Violation(self.rule, self.message)

    @property
    def is_not_tried(self) -> bool:
        """Whether the plugin could not be tried, for a reason that is not its fault."""
        return self.rule == rules.CHILD_STARTABLE


def bounded(opened: tuple[SeenFile, ...]) -> tuple[SeenFile, ...]:
    """Return libraries that code opened (`Finding.opened`), if each start can read them again.

    Raises `ValueError` if there are too many, they take too long to read, or a path cannot be
    shown.
    """
    if len(opened) > _MOST_OPENED:
        raise ValueError(f"expected at most {_MOST_OPENED} opened libraries, found {len(opened)}")
    for seen in opened:
        path = seen.path
        if not path.startswith("/") or len(path) > _MOST_OF_A_PATH or "\0" in path:
            raise ValueError(f"expected an absolute path, found {shown(path)}")
        # Messages show it. What is no text in the locale's encoding is shown escaped.
        if not all(c.isprintable() or "\udc80" <= c <= "\udcff" for c in path):
            raise ValueError(f"expected a path that can be shown, found {shown(path)}")
        if seen.identity is None:
            raise ValueError("expected a file, found none")
    sizes = [seen.identity.size for seen in opened if seen.identity is not None]
    if sum(size for size in sizes if size <= MOST_BYTES) > _MOST_TO_READ:  # none longer is read
        raise ValueError(f"expected at most {_MOST_TO_READ} bytes in what was opened")
    return opened


class Finding(NamedTuple):
    """The outcome of one plugin's first contact."""

    # What it did to its process; with one, the plugin must not run in the application.
    incident: Incident | None = None
    offer: Offer | None = None  # what it would register; None where the trial was cut short
    # The rules that it broke, errors and warnings, in the order in which loading finds them.
    notes: Annotated[tuple[Annotated[Violation, noted], ...], at_most(MOST_NOTES)] = ()
    opened: Annotated[tuple[SeenFile, ...], bounded] = ()  # by its code, besides what it needs
    # Whether `opened` is complete. Libraries that were closed again are not known, and a change of
    # them would go unnoticed: so the next process tries the plugin again.
    storable: bool = True

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
