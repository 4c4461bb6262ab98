"""Handles that no interrupt can lose.

A signal handler runs as soon as a call of a C function has returned. Where it raises, the result of
the call is gone before a line of ours has seen it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Callable


def opened(
    release: Callable[[Any], None], place: Any, call: Callable[..., Any], *arguments: Any
) -> tuple[Any, Any]:
    """Call a function that opens something; return its error, and what it opened.

    Args:
        release: Ends what was opened, when nobody has it any more; NULL is nothing to it.
        place: Where the function puts what it opens; a pointer to NULL.
        call: The function.
        arguments: Of the function; `place` is one of them.
    """
    is_owned = False
    try:
        error = call(*arguments)
        is_owned = True
        return error, ffi.gc(place[0], release)
    except BaseException:
        if not is_owned:
            release(place[0])
        raise
