"""The names that a plugin may register: schemes, platforms and types of devices."""

from __future__ import annotations

import re

SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9.]{1,999})?")
"""Matches, in full, a scheme that a plugin can serve; an empty one is that of plain paths.

Neither grows without end: lists and caches keep them."""

DEVICE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,999}")
"""Matches, in full, the platforms and device types that a name such as `TYPE:0` can hold."""

TENSORFLOW_DEVICE_NAME = re.compile(r"[A-Z][A-Z_]{0,999}")
"""Matches, in full, the names among them that TensorFlow accepts from a plugin."""
