"""What became of each plugin, as values that can be shown, compared and serialised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from modular_tf.discovery.sources.search_log import SearchedPlace
    from modular_tf.rules import Violation

PYTHON_SOURCE = "python"
"""The source of filesystems and devices that Python code registered."""
CONFIGURATION_SOURCE = "configuration"
"""The source of filesystems that `[filesystems]` of the configuration names."""


class State(Enum):
    """What became of a plugin."""

    FOUND = "found"
    REJECTED = "rejected"
    DISABLED = "disabled"
    SHADOWED = "shadowed"
    LOADED = "loaded"
    FAILED = "failed"
    QUARANTINED = "quarantined"

    def __str__(self) -> str:
        return self.value


class Decision(NamedTuple):
    """One step of the processing of a plugin, passed or refused.

    Attributes:
        stage: As a violation's.
        passed: Whether the plugin went on.
        rule: Id of the rule that decided, None where no single one did.
        text: What was decided and why, one sentence without a full stop.
    """

    stage: str
    passed: bool
    rule: str | None
    text: str

    def as_dict(self) -> dict[str, str | bool | None]:
        """Return it as JSON knows it."""
        return {
            "stage": self.stage,
            "passed": self.passed,
            "rule": self.rule,
            "text": self.text,
        }


class PluginRecord(NamedTuple):
    """One plugin, as it is now.

    Attributes:
        name: Short name, unique in a service.
        path: Its file; None for what Python code registered.
        source: What found it.
        kinds: What it brings.
        state: What became of it.
        schemes: URI schemes that it serves.
        device_types: Device types that it serves.
        reason: Why it does not serve, or the first of several; None where all is well.
        reasons: All of them.
        warnings: Rules that it broke without being refused.
        decisions: The steps that were decided, in order.
        kernels: How many kernels it brings.
        ops: How many operations of its own it defines.
        distribution: Name and version of the distribution that brings it, if known.
    """

    name: str
    path: str | None
    source: str
    kinds: tuple[str, ...] = ()
    state: State = State.FOUND
    schemes: tuple[str, ...] = ()
    device_types: tuple[str, ...] = ()
    reasons: tuple[Violation, ...] = ()
    warnings: tuple[Violation, ...] = ()
    decisions: tuple[Decision, ...] = ()
    kernels: int = 0
    ops: int = 0
    distribution: str | None = None

    @property
    def where(self) -> str:
        """Its file, or who named it where it has none."""
        is_configured = self.source == CONFIGURATION_SOURCE
        unnamed = "named by the configuration" if is_configured else "registered by Python code"
        return self.path or unnamed

    @property
    def reason(self) -> Violation | None:
        """The first reason."""
        return self.reasons[0] if self.reasons else None

    def as_dict(self) -> dict[str, Any]:
        """Return it as `list --json` prints it."""
        return {
            "name": self.name,
            "path": self.path,
            "source": self.source,
            "distribution": self.distribution,
            "kinds": list(self.kinds),
            "state": self.state._value_,  # `value` takes three calls
            "schemes": list(self.schemes),
            "device_types": list(self.device_types),
            "kernels": self.kernels,
            "ops": self.ops,
            "reason": self.reason.as_dict() if self.reason else None,
        }


class HookFunction(NamedTuple):
    """One function that an installed package or the application has for a hook.

    Attributes:
        hook: The hook's name.
        implementation: Who has it: the distribution with its entry point, or the object's name.
        order: "tryfirst" or "trylast" where the function asks for that; None for neither.
        wrapper: Whether it is called round the functions of others, and may replace their answers.
    """

    hook: str
    implementation: str
    order: str | None
    wrapper: bool

    def as_dict(self) -> dict[str, Any]:
        """Return it as `paths --json` prints it."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Report:
    """What a service knows after a step.

    Attributes:
        plugins: One record per plugin, in order of precedence.
        problems: What went wrong while searching.
        searched: The places that were looked at.
        hook_failures: What went wrong in hooks that installed packages or the application bring;
            of many failures the first hundred, each once.
        hooks: The functions of hooks that were found, in the order in which they are called.
    """

    plugins: tuple[PluginRecord, ...]
    problems: tuple[Violation, ...]
    searched: tuple[SearchedPlace, ...]
    hook_failures: tuple[Violation, ...] = ()
    hooks: tuple[HookFunction, ...] = ()

    def __getitem__(self, name: str) -> PluginRecord:
        for record in self.plugins:
            if record.name == name:
                return record
        raise KeyError(name)


class ChangeKind(Enum):
    """What happened to a plugin's file."""

    APPEARED = "appeared"
    REPLACED = "replaced"
    REMOVED = "removed"

    def __str__(self) -> str:
        return self.value


class PluginChange(NamedTuple):
    """One change that a service took note of.

    Attributes:
        kind: What happened to the file.
        path: The file.
        plugin: The plugin's name.
        record: The plugin as it is now; of a removed one, as it was last.
        kept: Why the library before goes on serving instead of the new file; None where that
            did not happen.
    """

    kind: ChangeKind
    path: str
    plugin: str
    record: PluginRecord
    kept: Violation | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "change": self.kind.value,
            "path": self.path,
            "plugin": self.plugin,
            "state": self.record.state.value,
            "schemes": list(self.record.schemes),
            "device_types": list(self.record.device_types),
            "reason": self.record.reason.as_dict() if self.record.reason else None,
            "kept": self.kept.as_dict() if self.kept else None,
        }
