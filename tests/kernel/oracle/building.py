"""The probe as a library, which both hosts load."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

FOLDER = Path(__file__).parent


def build_probe() -> Path:
    """Compile the probe against the public headers, once per machine."""
    sources = sorted(FOLDER.glob("*.c*"))
    objects = [compile_object(source, options=["-D_GNU_SOURCE"]) for source in sources]
    return link_library("libmtf_kernel_probe.so", objects, ["-lpthread"], cxx=True)
