"""The kernels of a plugin, on devices that they are for, for all checks of one process."""

from __future__ import annotations

from contextlib import contextmanager
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Blocked
from modular_tf.check.kernel.subject import KernelSubject
from modular_tf.check.kernel.survey import Survey
from modular_tf.check.session import Session, opened_service, random_for, temporary_state
from modular_tf.concurrency.computed_once import computed_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.target import Target

_HOST_DEVICE = "host_device"
"""The bundled plugin whose device is that on which kernels for the host's processor are tried."""


class KernelStage(Session):
    """All kernels of one plugin."""

    def __init__(self, target: Target) -> None:
        """Load the plugin and, for kernels of the host's processor, the device of this package.

        Raises:
            Blocked: It cannot be loaded.
        """
        super().__init__(target)
        with temporary_state(target.scratch):
            self._service = opened_service(target, bundled=True)
            if not self._service.devices():
                self._service.load(_HOST_DEVICE)  # by name: only as a bundled one it is the host's
        plugin = self._service.entry(target.path).plugin.name
        ops = target.options.get("ops", ["*"])
        kernels = [
            each
            for each in self._service.kernels(plugin=plugin)
            if any(fnmatchcase(each.op, pattern) for pattern in ops)
        ]
        if not kernels:
            raise Blocked(f"the plugin registers no kernels of {', '.join(ops)}")
        self.subject = KernelSubject(self._service, kernels, target.lost_calls, self.journal)

    @computed_once
    def survey(self) -> Survey:
        """What became of one call of each kernel and more; made by the first who asks."""
        return Survey(self.subject, Random(self.target.seed))  # noqa: S311  (repeatable)

    @contextmanager
    def workspace(self, check: Check) -> Iterator[KernelGround]:
        """Return what the check's function is given."""
        yield KernelGround(self, random_for(self.target, check.id))

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

    def __init__(self, stage: KernelStage, random: Random) -> None:
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
