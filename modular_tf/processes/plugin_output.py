"""What plugins write to standard output while they are loaded, sent to standard error."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.processes.child import flush_output

if TYPE_CHECKING:
    from collections.abc import Iterator

_STDOUT, _STDERR = 1, 2


@contextmanager
def output_to_standard_error() -> Iterator[None]:
    """Send what this process writes to standard output to standard error for a time.

    The descriptor is the whole process's. So nothing is changed where another thread might write
    there meanwhile, and where one of the descriptors is closed.
    """
    with ExitStack() as restored:
        with suppress(OSError):
            if len(os.listdir("/proc/self/task")) == 1:
                flush_output()  # what the application has printed stays its own
                kept = os.dup(_STDOUT)
                restored.callback(os.close, kept)
                restored.callback(_restore, kept)
                os.dup2(_STDERR, _STDOUT)
        yield


def _restore(kept: int) -> None:
    try:
        flush_output()
    finally:  # also where it is interrupted
        os.dup2(kept, _STDOUT)
