"""The templates of contrib/device_headers with backends that plugins do not have."""

from __future__ import annotations

import ctypes
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

HEADERS = Path(__file__).parents[2] / "contrib" / "device_headers"


def test_a_backend_may_throw_where_it_has_no_memory() -> None:
    source = Path(__file__).with_name("throwing_backend.cc")
    made = compile_object(source, header_folders=[HEADERS])
    library = ctypes.CDLL(str(link_library("libthrowing_backend.so", [made], cxx=True)))

    assert library.slots_with_memory() == 0
