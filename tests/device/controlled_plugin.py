"""A plugin with functions by which tests control it, mapped into this process."""

from __future__ import annotations

import ctypes
from functools import partial

from modular_tf.loading.binding import bind


class ControlledPlugin:
    """A mapped plugin; a process has one, so tests reset it.

    The functions at the end of its source are methods, without the prefix of their names.

    Args:
        path: Its library.
        prefix: What the names of its functions for tests begin with.
        reset: The function that forgets what tests did before.
    """

    def __init__(self, path, prefix, reset="reset"):
        self.library = bind(str(path), [], frozenset())
        self._prefix = prefix
        self.call(reset)

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


def _kind(argument):
    if isinstance(argument, bytes):
        return ctypes.c_char_p
    return ctypes.c_int if isinstance(argument, int) else type(argument)
