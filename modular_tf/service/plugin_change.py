"""What a change of a file made of a plugin, as a value that can be shown and serialised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modular_tf.rules import Violation
    from modular_tf.service.reload.watching.change import ChangeKind
    from modular_tf.service.report import PluginRecord


@dataclass(frozen=True, slots=True)
class PluginChange:
    """One change that a service took note of.

    Attributes:
        kind: What happened to the file.
        path: The file.
        plugin: The plugin's name.
        record: The plugin as it is now; of a removed one, as it was last.
        kept: Why the generation before goes on serving instead of the new file; None where that
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
