"""What a plugin has done to this process, beyond what checks see of its answers.

One process tries one subject, so these are facts of the process.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_is_damaged = False
_is_loading = False
_at_loading: str | None = None


def note_damage() -> None:
    """Say that memory is damaged: checks that are left need another process. [any thread]"""
    global _is_damaged  # noqa: PLW0603  (of this process, as the plugin is)
    _is_damaged = True


def is_damaged() -> bool:
    """Return whether memory is damaged."""
    return _is_damaged


@contextmanager
def loading() -> Iterator[None]:
    """Load the plugin within the block. [one thread]

    Every process does, so every check would be blamed for what it does then: one is about that.
    """
    global _is_loading  # noqa: PLW0603  (likewise)
    _is_loading = True
    try:
        yield
    finally:
        _is_loading = False


def is_loading() -> bool:
    """Return whether the plugin is just being loaded."""
    return _is_loading


def note_harm_at_loading(found: str) -> None:
    """Keep what was done to memory meanwhile; what is noted first stays."""
    global _at_loading  # noqa: PLW0603  (likewise)
    _at_loading = _at_loading or found


def harm_at_loading() -> str | None:
    """Return what was kept, None for nothing."""
    return _at_loading
