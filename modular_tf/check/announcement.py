"""Announcing calls to a plugin before they are made, so that a crash or a hang has a name.

One process tries one subject, so there is one listener in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _tell_nobody(_: str) -> None:
    pass


_listener: Callable[[str], None] = _tell_nobody


def announce(call: str) -> None:
    """Announce the next call.

    Args:
        call: C-like and shortened, such as `read(F, 0, 4)`. [any thread]
    """
    _listener(call)


def listen(listener: Callable[[str], None]) -> None:
    """Announce every call to a function, which must not raise. [before any call]"""
    global _listener  # noqa: PLW0603  (of this process, as the plugin is)
    _listener = listener
