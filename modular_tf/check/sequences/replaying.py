"""Performing one program in this very process, as for a debugger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.calls import listen
from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.scratch import scratch_folder
from modular_tf.check.sequences.performers import performer_of
from modular_tf.check.sequences.worker import performed
from modular_tf.check.session import session_of
from modular_tf.check.target import Target
from modular_tf.discovery.candidate import LoadFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.sequences.program import Replay
    from modular_tf.check.sequences.worker import Failure
    from modular_tf.check.settings import CheckSettings
    from modular_tf.discovery.probe import Probe


def replay(
    found: Replay, probe: Probe, settings: CheckSettings, tell: Callable[[str], None]
) -> Failure | None:
    """Perform a program again; a plugin that ends its process ends this one.

    Args:
        found: The program, and on what it is to be tried.
        probe: Of the library.
        settings: What the user wants: root and options count.
        tell: Is called with each call before it is made.

    Raises:
        Blocked: The plugin cannot be loaded.
        ModularTFError: Likewise.
        KeyError: The program is that of a check that is none.
    """
    check = all_checks()[found.check_id]
    facts = LoadFacts.of(probe)
    listen(tell)
    with scratch_folder(None) as folder:
        target = Target(
            path=probe.candidate.path,
            kind=check.kind,
            reached=found.reached,
            scheme=found.scheme,
            ordinal=found.ordinal,
            root=settings.root,
            scratch=folder,
            companions=facts.companions,
            absent=facts.absent,
            options={**settings.profile.options, **settings.options},
        )
        stage = session_of(target)
        try:
            return performed(performer_of(check.kind), stage, check, found.program)
        finally:
            stage.close()
