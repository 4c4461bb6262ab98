"""One check: a rule, and a function that tries whether a plugin keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.check.outcome import Pass
from modular_tf.check.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.level import Level
    from modular_tf.rules import Rule

BOTH = frozenset({Pass.RAW, Pass.HOST})
RAW = frozenset({Pass.RAW})
HOST = frozenset({Pass.HOST})
LIBRARY = frozenset({Pass.LIBRARY})

_USUAL_SECONDS = 30.0

F = TypeVar("F", bound="Callable[[Any], None]")


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, and how a plugin is tried on it.

    Attributes:
        id: Of its rule in `modular_tf.check.rules`, which states requirement, consequence,
            remedy, source and severity.
        kind: What it is tried on: a `filesystem`, `device` or `kernel` plugin, or the `library` of
            any of them.
        level: From which level on it is tried.
        group: Which checks share a process with it, such as `reading`.
        passes: In which ways it is tried.
        needs: Slots that must be there; without one it is skipped in the raw pass.
        traits: What it takes for granted of a store, such as `parents`: a profile may say that
            this kind of store has no such thing.
        rows: Its numbers in the conformance catalogue, none for others.
        seconds: How long it may take.
        run: Tries it on a ground (`FilesystemGround`, `DeviceGround`, ...). It returns where the
            rule is kept, and raises `Deviation`, `Unsupported` or `Blocked` where not.
    """

    id: str
    kind: str
    level: Level
    group: str
    passes: frozenset[Pass]
    needs: tuple[str, ...]
    traits: frozenset[str]
    rows: tuple[int, ...]
    seconds: float
    run: Callable[[Any], None]

    @property
    def rule(self) -> Rule:
        """The rule that it tries."""
        return all_rules()[self.id]


class CheckList:
    """The checks of one module, in the order they stand there.

    Args:
        kind: Of all of them that do not say another one.
        group: Of all of them.
    """

    def __init__(self, kind: str, group: str) -> None:
        self.checks: list[Check] = []
        self._kind = kind
        self._group = group

    def check(
        self,
        rule_id: str,
        level: Level,
        *,
        kind: str | None = None,
        passes: frozenset[Pass] = BOTH,
        needs: tuple[str, ...] = (),
        traits: tuple[str, ...] = (),
        rows: tuple[int, ...] = (),
        seconds: float = _USUAL_SECONDS,
    ) -> Callable[[F], F]:
        """Make a function a check; see `Check` for the arguments."""

        def add(run: F) -> F:
            made = Check(
                id=rule_id, kind=kind or self._kind, level=level, group=self._group, passes=passes,
                needs=needs, traits=frozenset(traits), rows=rows, seconds=seconds, run=run,
            )  # fmt: skip
            self.checks.append(made)
            return run

        return add
