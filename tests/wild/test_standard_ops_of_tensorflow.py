"""The table of TensorFlow's operations is what that release of TensorFlow says.

Runs where MODULAR_TF_TENSORFLOW_PYTHON names an interpreter that has TensorFlow and no plugins for
it; `scripts/tensorflow_coexistence` makes one. Elsewhere this test is deselected.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path

import pytest

import modular_tf.kernel.standard_ops as table
from tests.fixtures.children import describe
from tests.fixtures.process_group import run_in_group

pytestmark = [pytest.mark.wild, pytest.mark.tensorflow]

SCRIPT = Path(__file__).parents[2] / "scripts" / "write_standard_ops"


def test_the_script_writes_the_table_of_the_package(tmp_path):
    written = tmp_path / "standard_ops.bin"
    python = os.environ["MODULAR_TF_TENSORFLOW_PYTHON"]

    command = [sys.executable, str(SCRIPT), python, str(written)]
    child = run_in_group(command, cwd=tmp_path, env=dict(os.environ), timeout=200)

    assert child.returncode == 0, describe(child)
    shipped = Path(table.__file__).with_name("standard_ops.bin").read_bytes()
    # Releases of zlib compress to other bytes.
    assert zlib.decompress(written.read_bytes()) == zlib.decompress(shipped)
