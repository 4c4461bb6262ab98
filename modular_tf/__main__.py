"""`python -m modular_tf` is the command `modular-tf`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command; an interrupt while its modules are imported ends it without a traceback."""
    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if raises:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from modular_tf.cli.main import run  # noqa: PLC0415  (takes most of the start)

    if raises:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
