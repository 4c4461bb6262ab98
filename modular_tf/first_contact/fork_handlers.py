"""The functions that are called at each fork: counted when registered, since no list is kept."""

from __future__ import annotations

import os

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol


def fork_handler_count() -> int:
    """Return how often functions were registered; 0 where the counting library is not preloaded."""
    address = process_symbol("mtf_fork_handler_count")
    return 0 if address is None else int(ffi.cast("unsigned (*)(void)", address)())


def fork_once() -> None:
    """Fork, and wait for a child that ends at once; what functions do at that, they do here.

    A child that was ended by a signal of its own ends this process by the same one.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        os.kill(os.getpid(), -status)
    elif status > 0:
        os._exit(status)
