"""The scheme of a URI, as TensorFlow's filesystems are found by it."""

from __future__ import annotations

import re

match_scheme = re.compile(r"[A-Za-z][A-Za-z0-9.]+(?=://)").match
"""Matches the scheme at the start of a URI, and no plain path."""


def scheme_of(uri: str) -> str:
    """Return a URI's scheme, "" for a plain path. [any thread]"""
    match = match_scheme(uri)
    return match.group() if match else ""
