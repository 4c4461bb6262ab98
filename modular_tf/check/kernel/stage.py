"""The kernels of a plugin, on devices that they are for, for all checks of one process."""

from __future__ import annotations

import random
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modular_tf.check.call_journal import CallJournal
from modular_tf.check.expectation import Blocked
from modular_tf.check.kernel.subject import KernelSubject
from modular_tf.check.kernel.survey import Survey
from modular_tf.check.temporary_state import temporary_state
from modular_tf.concurrency.computed_once import computed_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.target import Target
    from modular_tf.service.service import PluginService

_HOST_DEVICE = "host_device"
"""The bundled plugin whose device is that on which kernels for the host's processor are tried."""


class KernelStage:
    """All kernels of one plugin; see `modular_tf.check.target.Stage`.

    Attributes:
        journal: The calls.
    """

    def __init__(self, target: Target) -> None:
        """Load the plugin and, for kernels of the host's processor, the device of this package.

        Raises:
            Blocked: It cannot be loaded.
        """
        self.journal = CallJournal()
        self.target = target
        self._service = _opened(target)
        plugin = self._service.entry(target.path).plugin.name
        ops = target.options.ops
        kernels = [
            each
            for each in self._service.kernels(plugin=plugin)
            if any(fnmatchcase(each.op, pattern) for pattern in ops)
        ]
        if not kernels:
            raise Blocked(f"the plugin registers no kernels of {', '.join(ops)}")
        self.subject = KernelSubject(self._service, kernels, target.lost_calls, self.journal)

    @property
    def calls(self) -> list[str]:
        """The calls of the current check."""
        return self.journal.calls

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return None: there are no slots."""
        del needs
        return None

    @computed_once
    def survey(self) -> Survey:
        """What became of one call of each kernel and more; made by the first who asks."""
        return Survey(self.subject, random.Random(self.target.seed))  # noqa: S311  (repeatable)

    @contextmanager
    def ground(self, check: Check) -> Iterator[KernelGround]:
        """Return what the check's function is given."""
        numbers = random.Random(f"{self.target.seed}:{check.id}")  # noqa: S311  (repeatable)
        yield KernelGround(self, numbers)

    def close(self) -> None:
        """End all kernel objects, and close the service."""
        self.subject.close()
        self._service.close()


class KernelGround:
    """What a check of kernels is given.

    Attributes:
        subject: Makes kernel objects and has them compute.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, stage: KernelStage, random: random.Random) -> None:
        self.subject = stage.subject
        self.random = random
        self._stage = stage

    @property
    def survey(self) -> Survey:
        """What became of one call of each kernel and more.

        Raises:
            Unsupported: No kernel could be called.
        """
        survey = self._stage.survey
        survey.require_calls()
        return survey


def _opened(target: Target) -> PluginService:
    from modular_tf.discovery.trust.policy import TrustPolicy  # noqa: PLC0415  (host pass)
    from modular_tf.service.configuration import Config  # noqa: PLC0415  (likewise)
    from modular_tf.service.service import PluginService  # noqa: PLC0415  (likewise)

    trust = TrustPolicy(allow_writable=("*",))  # it ran already when the checks were planned
    # The next process of a random sequence must not find the plugin in quarantine for the last one.
    config = Config(first_contact="never", load="eager", trust=trust, tell_ended_calls=False)
    with temporary_state(target.scratch):
        service = PluginService(config=config)
        service.load(target.path)
        if not service.devices():
            service.load(_HOST_DEVICE)  # by name: only as a bundled one it is the host's
    return service
