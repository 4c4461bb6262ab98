"""When what a command prints is passed on."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

_CODE = """
import sys
from modular_tf.cli import process
process.prepare()
print(sys.stdout.line_buffering)
"""


@pytest.mark.parametrize(
    ("variables", "by_line"), [({"PYTHONUNBUFFERED": ""}, False), ({"PYTHONUNBUFFERED": "1"}, True)]
)
def test_a_pipe_gets_each_line_at_once_if_python_is_unbuffered(run_python, variables, by_line):
    assert run_python(_CODE, env=variables).stdout == f"{by_line}\n"


def test_a_terminal_gets_each_line_at_once():
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        subprocess.run([sys.executable, "-c", _CODE], stdout=theirs, check=True, timeout=60)
        os.close(theirs)
        assert terminal.read(100).split() == [b"True"]
