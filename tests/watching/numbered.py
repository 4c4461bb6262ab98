"""Libraries that are told apart by a number, which all that they serve consists of."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

DIGITS, REPEATS = 8, 512
SIZE = DIGITS * REPEATS


@cache
def _template() -> bytes:
    source = Path(__file__).with_name("numbered_plugin.c")
    return link_library("libnumbered.so", [compile_object(source)]).read_bytes()


def numbered_library(slot: int, number: int) -> bytes:
    """Return a library that serves the scheme of a slot with a number."""
    content = _template()
    for old, new in (
        (b"number=00000000", f"number={number:0{DIGITS}}".encode()),
        (b"scheme=slot00", f"scheme={scheme_of(slot)}".encode()),
    ):
        assert content.count(old) == 1
        content = content.replace(old, new)
    return content


def scheme_of(slot: int) -> str:
    """Return the scheme of a slot."""
    return f"slot{slot:02}"


def number_in(content: bytes) -> int:
    """Return the number that a file consists of."""
    number = content[:DIGITS]
    if content != number * REPEATS:
        raise ValueError(f"the file has parts of several: {sorted(set(_parts(content)))}")
    return int(number)


def _parts(content: bytes) -> list[bytes]:
    return [content[at : at + DIGITS] for at in range(0, len(content), DIGITS)]
