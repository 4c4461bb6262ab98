"""The names that a plugin may register: schemes, platforms and types of devices."""

from __future__ import annotations

import re

SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9.]{1,999})?")
"""Matches, in full, a scheme that a plugin can serve; an empty one is that of plain paths.

Neither grows without end: lists and caches keep them."""

DEVICE_NAME = re.compile(r"[A-Z][A-Z_]{0,999}")
"""Matches, in full, a platform's name or the type of its devices, as TensorFlow accepts them."""
