"""The scheme of a URI, as TensorFlow's filesystems are found by it."""

from __future__ import annotations

import re

match_scheme = re.compile(r"[A-Za-z][A-Za-z0-9.]+(?=://)").match
"""Matches the scheme at the start of a URI, and no plain path."""

_OF_THIS_MACHINE = ("", "file", "ram")


def scheme_of(uri: str) -> str:
    """Return a URI's scheme, "" for a plain path. [any thread]"""
    match = match_scheme(uri)
    return match.group() if match else ""


def is_of_this_machine(scheme: str) -> bool:
    """Return whether calls of a scheme wait for no network. [any thread]"""
    return scheme in _OF_THIS_MACHINE
