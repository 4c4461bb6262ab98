"""Keeping the state of a service in a directory that is removed after the check."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATE = ("XDG_STATE_HOME", "XDG_CACHE_HOME")


@contextmanager
def temporary_state(scratch: str) -> Iterator[None]:
    """Keep the state of services within the block below a directory.

    A process of checks may end at any call, and its mark would put the plugin into quarantine.

    Args:
        scratch: The directory; empty for the user's own.
    """
    before = {name: os.environ.get(name) for name in _STATE}
    os.environ.update({name: os.path.join(scratch, name) for name in _STATE} if scratch else {})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
