"""Arguments that several file verbs have in common."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_POWERS = " KMGT"


def add_uris(parser: ArgumentParser, what: str = "what to work on") -> None:
    """Let the verb take one or more URIs or local paths."""
    parser.add_argument("uris", metavar="URI", nargs="+", help=f"{what}: a URI or a local path")


def add_sources_and_target(parser: ArgumentParser) -> None:
    """Let the verb take sources and, last, a target."""
    add_uris(parser, "source")
    parser.add_argument("target", metavar="TARGET", help="a URI or path; a directory for several")


def add_human_readable(parser: ArgumentParser, condition: str = "") -> None:
    """Let the verb show sizes with units."""
    parser.add_argument(
        "-h", "--human-readable", action="store_true",
        help=f"{condition}sizes as 1.5 KiB or 23 MiB",
    )  # fmt: skip


def count(text: str) -> int:
    """Return a number that is not negative.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 10")
    return int(text)


def byte_count(text: str) -> int:
    """Return a number of bytes from text such as 100, 64K or 1.5GiB; units are powers of 1024.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 100, 64K or 1.5GiB")
    number, unit = match.groups()
    power = _POWERS.index(unit.upper() or " ")
    return int(number) * 1024**power if number.isdecimal() else int(float(number) * 1024**power)
