"""The library of a device plugin, mapped and not initialised until a check needs it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.check.device.entry_trial import EntryTrial
from modular_tf.check.device.raw_platform import RawPlatform, read_tables
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.session import LibrarySession, random_for
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.errors import ModularTFError
from modular_tf.loading.device_loader import ENTRY_POINT, RefusedDeviceTables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from modular_tf.check.check import Check
    from modular_tf.loading.device_tables import DeviceTables


class DeviceLibraryStage(LibrarySession):
    """A library, initialised once for all checks of one process."""

    @contextmanager
    def workspace(self, check: Check) -> Iterator[DeviceLibraryGround]:
        """Return what the check's function is given."""
        yield DeviceLibraryGround(self, random_for(self.target, check.id))

    @computed_once
    def verdict(self) -> DeviceTables | RefusedDeviceTables:
        """What the loader makes of the plugin; this initialises it."""
        return read_tables(self.map(), self.journal)

    @computed_once
    def platform(self) -> RawPlatform:
        """The accepted platform, its functions ready to be called."""
        verdict = self.verdict
        if isinstance(verdict, RefusedDeviceTables):
            raise verdict.error()
        return RawPlatform(verdict, self.journal)

    @computed_once
    def trial(self) -> EntryTrial:
        """SE_InitPlugin as TensorFlow calls it; this initialises the plugin."""
        return self.init()

    def init(self) -> EntryTrial:
        """Call SE_InitPlugin as TensorFlow does."""
        entry = self.map().symbol(ENTRY_POINT)
        if entry is None:
            raise Blocked(f"{ENTRY_POINT} is not exported")
        return EntryTrial(entry, self.journal)


class DeviceLibraryGround:
    """What a check of a device library is given; each process initialises the plugin in one way.

    Attributes:
        target: What is checked.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, stage: DeviceLibraryStage, random: Random) -> None:
        self.target = stage.target
        self.random = random
        self._stage = stage

    @property
    def verdict(self) -> DeviceTables | RefusedDeviceTables:
        """What the loader makes of the plugin.

        Raises:
            Blocked: The library cannot be mapped.
        """
        try:
            return self._stage.verdict
        except ModularTFError as error:
            raise Blocked(error.message) from None

    @property
    def platform(self) -> RawPlatform:
        """The platform that the loader accepts.

        Raises:
            Blocked: It accepts none.
        """
        try:
            return self._stage.platform
        except ModularTFError as error:
            raise Blocked(error.message) from None

    @property
    def trial(self) -> EntryTrial:
        """What SE_InitPlugin left when it was called as TensorFlow does.

        Raises:
            Blocked: The library cannot be mapped.
        """
        try:
            return self._stage.trial
        except ModularTFError as error:
            raise Blocked(error.message) from None

    @property
    def accepted_trial(self) -> EntryTrial:
        """Likewise, where it succeeded, and TensorFlow could go on.

        Raises:
            Blocked: It failed.
            Unsupported: The functions lie elsewhere than where TensorFlow 2.21 looks for them.
        """
        trial = self.trial
        if not trial.answer.ok:
            raise Blocked(f"SE_InitPlugin failed: {trial.answer.message}")
        if trial.has_own_structs:
            raise Unsupported("the plugin hands over structs of its own: TensorFlow sees none")
        if trial.other_layout:
            raise Unsupported(f"the plugin has the layout of {trial.other_layout}")
        return trial

    def init_again(self) -> EntryTrial:
        """Call SE_InitPlugin once more, the first platform having been destroyed."""
        return self._stage.init()
