"""What a plugin still serves when others took something from it later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.rules.filesystem import scheme_taken
from modular_tf.service.report import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.filesystem.registry import Registered
    from modular_tf.rules import Violation
    from modular_tf.service.report import PluginRecord


def without_lost_schemes(
    record: PluginRecord,
    filesystems: Mapping[str, Registered],
    serving: Mapping[str, Registered],
) -> PluginRecord:
    """Return a record without the schemes that somebody registered anew with `replace=True`.

    Args:
        record: What the plugin registered.
        filesystems: Its filesystems, by scheme.
        serving: What serves now, by scheme.
    """
    lost = [scheme for scheme in record.schemes if serving.get(scheme) is not filesystems[scheme]]
    if not lost:
        return record
    kept = tuple(scheme for scheme in record.schemes if scheme not in lost)
    reasons = [_taken(scheme, record.name, serving[scheme]) for scheme in lost if scheme in serving]
    shadowed = bool(reasons) and not kept and not record.device_types
    return record._replace(
        schemes=kept,
        state=State.SHADOWED if shadowed else record.state,
        reasons=(*record.reasons, *reasons),
    )


def _taken(scheme: str, loser: str, winner: Registered) -> Violation:
    return scheme_taken(scheme, loser, winner.plugin, "was taken over by").at("register")
