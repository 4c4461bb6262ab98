"""`python -m modular_tf` is the command `modular-tf`."""

from __future__ import annotations

import gc
import signal
import sys

_VALUES_BETWEEN_COLLECTIONS = 100_000


def main() -> int:
    """Run the command; an interrupt while its modules are imported ends it without a traceback."""
    # What a command makes it keeps to its end: looking for cycles in it finds none and costs time.
    gc.set_threshold(_VALUES_BETWEEN_COLLECTIONS)
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from modular_tf.cli.main import run  # noqa: PLC0415  (takes most of the start)

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run()
    gc.freeze()  # nor does the end of the interpreter look for any
    return code


if __name__ == "__main__":
    sys.exit(main())
