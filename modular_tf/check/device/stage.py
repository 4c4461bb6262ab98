"""A device that is loaded and ready, for all checks of one process."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.check.device.ground import DeviceGround
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.outcome import Pass
from modular_tf.check.session import Session, mapped_library, opened_service, random_for
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.check import Check
    from modular_tf.check.device.subject import DeviceSubject
    from modular_tf.check.target import Target
    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform


class DeviceStage(Session):
    """One device of one plugin.

    A plugin without devices has a session too: there, each check is skipped, and says why.
    """

    def __init__(self, target: Target) -> None:
        """Load the plugin and create the device.

        Raises:
            Blocked: It cannot be loaded, or the device cannot be created.
        """
        super().__init__(target)
        self._opened: tuple[DeviceSubject, Callable[[], object]] | None = None
        self._why_none = ""
        open_device = _raw_device if target.reached is Pass.RAW else _hosted_device
        try:
            self._opened = open_device(target, self.journal)
        except Unsupported as unsupported:
            self._why_none = str(unsupported)

    @property
    def subject(self) -> DeviceSubject:
        """The device that checks are tried on.

        Raises:
            Unsupported: The plugin has no such device, or none at all.
        """
        if self._opened is None:
            raise Unsupported(self._why_none)
        return self._opened[0]

    def lacks(self, needs: tuple[str, ...]) -> str | None:
        """Return the first of these slots that is not there."""
        if self._opened is None:
            return None  # the ground says what there is not
        is_raw = self.target.reached is Pass.RAW
        there = self.subject.has if is_raw else self.subject.offers
        return next((slot for slot in needs if not there(slot)), None)

    @contextmanager
    def workspace(self, check: Check) -> Iterator[DeviceGround]:
        """Give a ground, and destroy what the check has left on it."""
        ground = DeviceGround(self.subject, self.target, random_for(self.target, check.id))
        try:
            yield ground
        except BaseException:
            _close_quietly(ground)
            raise
        ground.close()

    def close(self) -> None:
        """Destroy the device and take the platform down."""
        if self._opened is not None:
            self._opened[1]()


def _close_quietly(ground: DeviceGround) -> None:
    """Clean up after a check that has failed, whose finding counts."""
    with suppress(Exception):  # a plugin that fails may fail in its clean-up too
        ground.close()


def _raw_device(target: Target, journal: CallJournal) -> tuple[DeviceSubject, Callable[[], object]]:
    from modular_tf.check.device.raw_platform import (  # noqa: PLC0415  (one of the two)
        RawPlatform,
        accepted_tables,
    )
    from modular_tf.check.device.raw_subject import created_device  # noqa: PLC0415  (likewise)

    try:
        platform = RawPlatform(accepted_tables(mapped_library(target), journal), journal)
    except ModularTFError as error:
        raise Blocked(error.message) from None
    count = platform.device_count()
    if not count.ok:
        raise Blocked(f"get_device_count failed: {count.message}")
    _check_ordinal(target.ordinal or 0, count.value)
    subject = created_device(platform, target.ordinal or 0)

    def close() -> None:
        subject.created.destroy()
        platform.take_down()

    return subject, close


def _hosted_device(
    target: Target, journal: CallJournal
) -> tuple[DeviceSubject, Callable[[], object]]:
    from modular_tf.check.device.host_subject import HostDeviceSubject  # noqa: PLC0415  (likewise)

    service = opened_service(target)
    entry = service.entry(target.path)
    platform = entry.platform
    if platform is None:
        raise Blocked("; ".join(reason.message for reason in entry.plugin.record().reasons))
    try:
        _check_ordinal(target.ordinal or 0, platform.device_count())
        device = _visible(service.devices(), platform, target.ordinal or 0)
        _ = device.executor
    except ModularTFError as error:
        raise Blocked(error.message) from None
    return HostDeviceSubject(device, platform, journal), service.close


def _visible(devices: list[Device], platform: DevicePlatform, ordinal: int) -> Device:
    for device in devices:
        if device.factory is platform and device.ordinal == ordinal:
            return device
    raise Blocked(f"{platform.device_type}:{ordinal} is not among the devices that are visible")


def _check_ordinal(ordinal: int, count: int) -> None:
    if count <= 0:
        raise Unsupported("the plugin has no devices here: there is nothing to check")
    if ordinal >= count:
        raise Unsupported(f"the plugin has {count} devices here: there is no ordinal {ordinal}")
