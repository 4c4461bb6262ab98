"""Whether Python still handles a signal after a plugin has installed its own handler.

Some handlers call the handler that was installed before (LLVM's do), others do not. This can only
be tried: the signal is sent to a fork of this process, which it may end.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

_PATIENCE_S = 2.0
_LOOK_EVERY_S = 0.001
_REACHED = b"r"


def reaches_python(number: int) -> bool:
    """Send a signal to a fork of this process and return whether Python handles it.

    Args:
        number: One that raises KeyboardInterrupt, or one that Python has the system ignore.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        _take_signal(number, writes)
    os.close(writes)
    try:
        readable, _, _ = select.select([reads], [], [], _PATIENCE_S)
        return bool(readable) and os.read(reads, 1) == _REACHED
    finally:
        os.close(reads)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _take_signal(number: int, answer: int) -> None:
    reached = number != signal.SIGINT
    try:
        os.kill(os.getpid(), number)
        deadline = time.monotonic() + _PATIENCE_S / 2
        while not reached and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        reached = True
    finally:
        if reached:
            os.write(answer, _REACHED)
        os._exit(0)
