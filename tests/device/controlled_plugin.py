"""A plugin with functions by which tests control it, mapped into this process."""

from __future__ import annotations

import ctypes

from modular_tf.loading.binding import bind


class ControlledPlugin:
    """A mapped plugin; a process has one, so tests reset it.

    Args:
        path: Its library.
        prefix: What the names of its functions for tests begin with.
        reset: The function that forgets what tests did before.
    """

    def __init__(self, path, prefix, reset="reset"):
        self.library = bind(str(path), [], frozenset())
        self._prefix = prefix
        self.call(reset)

    def call(self, name, *arguments, result=None):
        """Call a function; whole numbers are passed as int, other numbers as their ctypes type."""
        address = self.library.symbol(self._prefix + name)
        assert address, name
        kinds = [_kind(argument) for argument in arguments]
        return ctypes.CFUNCTYPE(result, *kinds)(address)(*arguments)


def _kind(argument):
    if isinstance(argument, bytes):
        return ctypes.c_char_p
    return ctypes.c_int if isinstance(argument, int) else type(argument)
