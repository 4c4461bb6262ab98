"""URIs and paths as TensorFlow's filesystems understand them.

A URI is `scheme://host/path`; a scheme is a letter and then one or more letters, digits or dots.
Anything else is a plain path, which belongs to the empty scheme. There is no percent-decoding,
no case folding, and `?` and `#` are ordinary characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

match_scheme = re.compile(r"[A-Za-z][A-Za-z0-9.]+(?=://)").match
"""Matches the scheme at the start of a URI, and no plain path."""

_OF_THIS_MACHINE = ("", "file", "ram")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9.]+)://([^/]*)(.*)", re.DOTALL)


def scheme_of(uri: str) -> str:
    """Return a URI's scheme, "" for a plain path. [any thread]"""
    match = match_scheme(uri)
    return match.group() if match else ""


def is_of_this_machine(scheme: str) -> bool:
    """Return whether calls of a scheme wait for no network. [any thread]"""
    return scheme in _OF_THIS_MACHINE


class ParsedURI(NamedTuple):
    """The parts of a URI; `scheme` and `host` are empty for a plain path."""

    scheme: str
    host: str
    path: str


def parse_uri(uri: str) -> ParsedURI:
    """Return the parts of a URI. [any thread]"""
    match = _URI.fullmatch(uri)
    return ParsedURI(*match.groups()) if match else ParsedURI("", "", uri)


def create_uri(scheme: str, host: str, path: str) -> str:
    """Return the URI of its parts; with an empty scheme, the path only."""
    return f"{scheme}://{host}{path}" if scheme else path


def clean_path(path: str) -> str:
    """Return the lexical normal form of a path.

    Slashes collapse, `.` goes, `..` is resolved (it stops at the root, and stays in front of a
    relative path), a trailing slash goes; an empty result is ".".
    """
    # Help and names need no native core.
    from modular_tf.native.ffi import ffi, lib  # noqa: PLC0415
    from modular_tf.native.strings import decode, encode  # noqa: PLC0415

    encoded = encode(path)
    out = ffi.new("char[]", len(encoded) + 2)
    length = lib.mtf_clean_path(encoded, out)
    return decode(bytes(ffi.buffer(out, length)))


def join_path(left: str, right: str) -> str:
    """Return two paths joined by exactly one slash, also if `right` is absolute."""
    if not left or not right:
        return left or right
    between = "" if left.endswith("/") else "/"
    return f"{left}{between}{right.removeprefix('/')}"


def split_last(uri: str) -> tuple[str, str]:
    """Split into the directory's URI, which keeps scheme and host, and the last name.

    `zz://h/p` gives (`zz://h/`, `p`); `s` gives ("", `s`); a URI without path gives itself and "".
    """
    scheme, host, path = parse_uri(uri)
    slash = path.rfind("/")
    parent = path[: max(slash, 1)] if slash >= 0 else ""
    return create_uri(scheme, host, parent), path[slash + 1 :]


def dirname(uri: str) -> str:
    """Return the directory's URI of a URI."""
    return split_last(uri)[0]


def basename(uri: str) -> str:
    """Return the part behind the last slash, "" where there is none."""
    return split_last(uri)[1]
