"""What the plugins of a command did: `--trace FILE` and `--statistics FILE`."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator


@contextmanager
def measured(options: Namespace) -> Iterator[None]:
    """Measure the calls into plugins in the block, as the options of a command say.

    Statistics are written when the block has ended, also by a failure.

    Raises:
        OSError: One of the files cannot be written.
    """
    with ExitStack() as ends:
        if options.trace is not None:
            from modular_tf.service.tracing import trace  # noqa: PLC0415  (few commands need it)

            ends.enter_context(trace(options.trace))
        if options.statistics is not None:
            ends.enter_context(_counted(options.statistics))
        yield


@contextmanager
def _counted(path: str) -> Iterator[None]:
    from modular_tf.native.measured_calls import CountedCalls  # noqa: PLC0415  (loads the native core)
    from modular_tf.service.kept.storage.output_file import refuse_special, write_output  # noqa: PLC0415
    from modular_tf.service.statistics import statistics_of  # noqa: PLC0415

    refuse_special(path)  # before the work is done
    counted = CountedCalls()
    try:
        yield
    finally:
        counted.close()
        write_output(path, statistics_of().prometheus().encode())
