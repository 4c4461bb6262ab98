"""What stands in for a function of the C++ library does the same, but for what crashes a plugin."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_program

_CORE = Path(__file__).parents[2] / "modular_tf" / "native" / "core"


def test_only_a_document_without_element_that_can_be_read_counts_as_nothing():
    """A stream that only takes bytes is no answer of a store, and cannot be looked into."""
    sources = (_CORE / "stream_guard.cc", Path(__file__).with_name("stream_guard.cc"))
    objects = [compile_object(source, header_folders=[_CORE]) for source in sources]
    program = link_program("stream_guard", objects, ["-ldl"])
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "11", "3", "3", "7", "0", "7", "7", "0"]
