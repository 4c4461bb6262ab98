"""A plugin with functions by which tests control it, mapped into this process."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import partial

from modular_tf.device.platform import load_device_platform
from modular_tf.device.registry import DeviceRegistry
from modular_tf.loading.binding import bind
from modular_tf.loading.device_loader import RefusedDevicePluginError


class ControlledPlugin:
    """A mapped plugin; a process has one, so tests reset it.

    The functions at the end of its source are methods, without the prefix of their names.

    Args:
        path: Its library.
        name: What the host calls it.
        prefix: What the names of its functions for tests begin with.
        reset: The function that forgets what tests did before.
    """

    def __init__(self, path, name, prefix, reset="reset"):
        self.library = bind(str(path), [], frozenset())
        self._name, self._prefix = name, prefix
        self.call(reset)

    def load(self, memory=None):
        """Load its platform, with what a user decided on memory."""
        decided = None if memory is None else lambda _: memory
        return load_device_platform(self.library, plugin_name=self._name, memory=decided)

    def refusal(self):
        """Load it, which must be refused, and return the error."""
        try:
            platform = self.load()
        except RefusedDevicePluginError as error:
            return error
        platform.close()
        raise AssertionError("the plugin was accepted")

    @contextmanager
    def platform(self, memory=None):
        """Load its platform, and close that in the end."""
        with self.load(memory) as platform:
            yield platform

    @contextmanager
    def devices(self, memory=None):
        """Load it, with what a user decided on memory, and yield its devices."""
        with self.platform(memory) as platform:
            yield devices_of(platform)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.call, name)

    def call(self, name, *arguments, result=None):
        """Call a function; whole numbers are passed as int, other numbers as their ctypes type."""
        address = self.library.symbol(self._prefix + name)
        assert address, name
        values = [each.encode() if isinstance(each, str) else each for each in arguments]
        kinds = [_kind(value) for value in values]
        return ctypes.CFUNCTYPE(result, *kinds)(address)(*values)

    def text_of(self, name):
        """Call a function that returns a text."""
        return self.call(name, result=ctypes.c_char_p).decode()


def devices_of(platform):
    """Return the devices of a platform that no registry has."""
    registry = DeviceRegistry()
    registry.register(platform, plugin=platform.plugin)
    return registry.devices(platform.device_type)


def _kind(argument):
    if isinstance(argument, bytes):
        return ctypes.c_char_p
    return ctypes.c_int if isinstance(argument, int) else type(argument)
