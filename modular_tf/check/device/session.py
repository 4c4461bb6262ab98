"""A device plugin that is loaded and ready, or its library alone, for all checks of one process."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.device.by_slots import SlotDevice, SlotPlatform, accepted, read_tables
from modular_tf.check.device.entry_trial import EntryTrial
from modular_tf.check.device.through_host import HostDevice
from modular_tf.check.device.workspace import Workspace
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.outcome import Pass
from modular_tf.check.session import (
    LibrarySession,
    Session,
    blocked_by,
    mapped_library,
    opened_service,
    random_for,
)
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.device.factory import MAX_DEVICES
from modular_tf.loading.device_loader import ENTRY_POINT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.check import Check
    from modular_tf.check.device.operations import DeviceAccess
    from modular_tf.check.target import Target
    from modular_tf.loading.device_loader import RefusedDeviceTables
    from modular_tf.loading.device_tables import DeviceTables


class DeviceSession(Session):
    """One device of one plugin.

    A plugin without devices has a session too: there, each check is skipped, and says why.
    """

    def __init__(self, target: Target) -> None:
        """Load the plugin and create the device.

        Raises `Blocked` where it cannot be loaded, or the device cannot be created.
        """
        super().__init__(target)
        self._access: DeviceAccess | None = None
        self._why_none = ""
        reach = _by_slots if target.reached is Pass.RAW else _through_host
        try:
            with blocked_by():
                self._access = reach(target, self.journal)
        except Unsupported as unsupported:
            self._why_none = str(unsupported)

    @property
    def access(self) -> DeviceAccess:
        """The device that checks are tried on.

        Raises `Unsupported` where the plugin has no such device, or none at all.
        """
        if self._access is None:
            raise Unsupported(self._why_none)
        return self._access

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that is not there; through the host, others stand in."""
        device = self._access
        if not isinstance(device, SlotDevice):
            return None
        return next((slot for slot in needs if not device.has(slot)), None)

    @contextmanager
    def workspace(self, check: Check) -> Iterator[Workspace]:
        """Return the device for a check, and destroy what the check has left there."""
        workspace = Workspace(self.access, self.target, random_for(self.target, check.id))
        try:
            yield workspace
        except BaseException:
            with suppress(Exception):  # a plugin that fails may fail in its clean-up too
                workspace.close()
            raise
        workspace.close()

    def close(self) -> None:
        """Destroy the device and take the platform down."""
        if self._access is not None:
            self._access.close()


def _by_slots(target: Target, journal: CallJournal) -> DeviceAccess:
    tables = accepted(read_tables(mapped_library(target), journal))
    platform = SlotPlatform(tables, journal)
    _check_ordinal(target.ordinal or 0, platform.device_count().needed("SE-040"))
    return SlotDevice(platform, target.ordinal or 0)


def _through_host(target: Target, journal: CallJournal) -> DeviceAccess:
    service, ordinal = opened_service(target), target.ordinal or 0
    entry = service.entry(target.path)
    platform = entry.platform
    if platform is None:
        raise Blocked("; ".join(reason.message for reason in entry.plugin.record().reasons))
    _check_ordinal(ordinal, platform.device_count())
    for device in service.devices():
        if device.factory is platform and device.ordinal == ordinal:
            _ = device.executor
            return HostDevice(device, platform.tables, journal, service.close)
    raise Blocked(f"{platform.device_type}:{ordinal} is not among the devices that are visible")


def _check_ordinal(ordinal: int, count: int) -> None:
    if count <= 0:
        raise Unsupported("the plugin has no devices here: there is nothing to check")
    if ordinal >= count:
        raise Unsupported(f"the plugin has {count} devices here: there is no ordinal {ordinal}")


class DeviceLibrary(LibrarySession):
    """The library of a device plugin, initialised once for all checks of one process.

    A process does so either as this package does (`verdict`), or as TensorFlow (`trial`).
    """

    @computed_once
    def verdict(self) -> DeviceTables | RefusedDeviceTables:
        """What the loader makes of the plugin; `Blocked` where the library cannot be mapped."""
        with blocked_by():
            return read_tables(self.map(), self.journal)

    @property
    def tables(self) -> DeviceTables:
        """What the loader has accepted; `Blocked` where it refused the plugin."""
        with blocked_by():
            return accepted(self.verdict)

    @computed_once
    def platform(self) -> SlotPlatform:
        """The accepted platform, its functions ready to be called; raises as `tables`."""
        with blocked_by():
            return SlotPlatform(self.tables, self.journal)

    @property
    def count(self) -> int:
        """The number of devices, which other checks are about.

        Raises `Blocked` where it is unknown, or impossible.
        """
        count = int(self.platform.device_count().needed("SE-040"))
        if not 0 <= count <= MAX_DEVICES:
            raise Blocked(f"get_device_count reported {count}")
        return count

    @contextmanager
    def device(self, ordinal: int) -> Iterator[SlotDevice]:
        """Create a device for a while; `Blocked` where it cannot be created."""
        device = SlotDevice(self.platform, ordinal)
        try:
            yield device
        finally:
            device.created.destroy()

    @computed_once
    def trial(self) -> EntryTrial:
        """What SE_InitPlugin left when it was called as TensorFlow does; raises as `init`."""
        return self.init()

    def init(self) -> EntryTrial:
        """Call SE_InitPlugin as TensorFlow does.

        Raises `Blocked` where the library cannot be mapped, or does not export it.
        """
        with blocked_by():
            entry = self.map().symbol(ENTRY_POINT)
        if entry is None:
            raise Blocked(f"{ENTRY_POINT} is not exported")
        return EntryTrial(entry, self.journal)

    @property
    def accepted_trial(self) -> EntryTrial:
        """The trial, where it succeeded, and TensorFlow 2.21 finds the functions where it looks."""
        trial = self.trial
        if not trial.answer.ok:
            raise Blocked(f"SE_InitPlugin failed: {trial.answer.message}")
        if trial.has_own_structs:
            raise Unsupported("the plugin hands over structs of its own: TensorFlow sees none")
        if trial.other_layout:
            raise Unsupported(f"the plugin has the layout of {trial.other_layout}")
        return trial
