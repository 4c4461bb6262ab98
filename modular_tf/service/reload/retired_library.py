"""Old libraries of plugins, which serve nobody new, until nobody uses them."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError
from modular_tf.service.registrations import close_served

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.service.plugin import Plugin
    from modular_tf.service.registrations import Registrations


class RetiredLibrary:
    """A library that was replaced, or whose file is gone.

    A filesystem lives as long as somebody has it or a file of it open, and is cleaned up with the
    last of them. A platform is closed when `is_drained` is found true. Used under the
    service's lock.

    Attributes:
        plugin: The plugin's name.
        path: The file that it was loaded from.

    Args:
        plugin: As above.
        path: As above.
        filesystems: Those that it had opened.
        platform: Its devices, None for none.
        lent: The devices that were handed out.
    """

    def __init__(
        self,
        plugin: str,
        path: str,
        filesystems: Iterable[PluginFilesystem],
        platform: DevicePlatform | None,
        lent: Iterable[Device],
    ) -> None:
        self.plugin = plugin
        self.path = path
        self._filesystems = weakref.WeakSet(filesystems)
        self._platform = platform
        self._lent = weakref.WeakSet(lent)

    @classmethod
    def of(cls, plugin: Plugin, registrations: Registrations) -> RetiredLibrary:
        """Make it of what a plugin has registered, before that is given back."""
        return cls(
            plugin.name,
            plugin.path,
            registrations.opened_filesystems,
            registrations.loaded_platform,
            registrations.lent_devices,
        )

    @property
    def is_drained(self) -> bool:
        """Whether nobody holds a filesystem, a file, a device or anything of a device."""
        if self._filesystems or self._lent:
            return False
        return self._platform is None or self._platform.is_idle

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in list(self._filesystems):
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Close what is left, also under those who hold it; add what went wrong to `failures`."""
        close_served(list(self._filesystems), self._platform, failures, at_exit=at_exit)
