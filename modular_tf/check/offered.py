"""What a library registers, found out in a child process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task

if TYPE_CHECKING:
    from modular_tf.discovery.candidate import LoadFacts
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Incident
    from modular_tf.rules import Violation


@dataclass(frozen=True, slots=True)
class Offered:
    """What a library registers.

    Attributes:
        schemes: Those that can be used.
        device_type: The type of its devices, None where it is no device plugin.
        kernels: How many kernels.
        incident: What it did to the process that it was tried in, None for nothing.
        notes: The rules that it broke.
    """

    schemes: tuple[str, ...]
    device_type: str | None
    kernels: int
    incident: Incident | None
    notes: tuple[Violation, ...]


def offered_by(probe: Probe, facts: LoadFacts, limits: Limits | None = None) -> Offered:
    """Try a library as a host does before it loads it.

    Args:
        probe: Of the library.
        facts: Likewise.
        limits: What loading may take; None for the usual.
    """
    task = Task(
        plugin=probe.candidate.name,
        file=probe.candidate.path,
        companions=facts.companions,
        absent=facts.absent,
        kinds=tuple(sorted(kind.value for kind in facts.kinds)),
    )
    (finding,) = try_plugins([task], limits or Limits())
    offer = finding.offer
    platform = None if offer is None else offer.platform
    return Offered(
        schemes=() if offer is None else offer.schemes,
        device_type=None if platform is None else platform.device_type,
        kernels=0 if offer is None else offer.kernels,
        incident=finding.incident,
        notes=finding.notes,
    )
