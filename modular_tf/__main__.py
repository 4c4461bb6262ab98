"""`python -m modular_tf` is the command `modular-tf`."""

from __future__ import annotations

import sys

from modular_tf.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
