"""Whether a plugin has damaged this process, so that checks that are left need another one.

One process tries one subject, so it is a fact of the process.
"""

from __future__ import annotations

_is_damaged = False


def note_damage() -> None:
    """Say that it has. [any thread]"""
    global _is_damaged  # noqa: PLW0603  (of this process, as the plugin is)
    _is_damaged = True


def is_damaged() -> bool:
    """Tell whether it has."""
    return _is_damaged
