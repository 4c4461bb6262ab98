"""`trace`: every call into a plugin as an event of a file that trace viewers read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def trace(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Write each call into a plugin that begins and ends in the block to a file. [any thread]

    The calls are those of all threads and services of this process; a forked child writes nothing.
    The file is JSON in the array format of Chrome and Perfetto (https://ui.perfetto.dev): one
    complete event per call, with the operation as its name, the plugin as its category,
    microseconds of the monotonic clock, process and thread, and as arguments `plugin`, `subject`
    (the path without secrets, or the device), `bytes` and `status`. No event is kept in memory,
    and a regular file is whole JSON after each one, also where the process is killed.

    Args:
        path: The file, whose content is replaced; its directory exists. A pipe is written as well.

    Raises:
        FailedPreconditionError: A trace is under way in this process.
        OSError: The file cannot be written. Where that comes up during the block, it is raised at
            the end of the block, and the file has the calls until then.
    """
    from modular_tf.native.measured_calls import traced_calls  # noqa: PLC0415  (loads the native core)

    return traced_calls(os.fsdecode(path))
