"""Actions that a child process performs one after the other, and what came of each."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DONE = "done"
actions: dict[str, Callable[[str], None]] = {}


def action(function: Callable[[str], None]) -> Callable[[str], None]:
    """Add an action under the function's name; it is given a folder."""
    actions[function.__name__] = function
    return function


def expect(found: object, expected: object) -> None:
    """Raise unless both are equal."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def outcome_of(call: Callable[[], object]) -> str:
    """Return what came of a call: DONE, or the traceback of its exception."""
    try:
        call()
    except Exception:  # noqa: BLE001  (told by the test)
        return traceback.format_exc()
    return DONE
